import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { constants, getPriority } from 'node:os';
import { fileURLToPath } from 'node:url';
import { expect } from 'chai';
import { connectForWriting } from '../../shared/redis/connections.ts';
import { startMedref } from '../support/medref.ts';
import { useRedis } from '../support/redis-server.ts';
import { upstreamServers } from '../support/upstream-server.ts';

const low = constants.priority.PRIORITY_BELOW_NORMAL;

/** What an import comes to that is started from here: never more than those have who started it. */
const lowFromHere = Math.max(low, getPriority());

/**
 * What Linux takes off the weight of a process's session; `null` where it weighs processes alone, and for a process that
 * is in no session's group: its file is empty.
 */
function sessionPriority(pid: number): number | null {
  const file = `/proc/${pid}/autogroup`;
  const nice = existsSync(file) ? /nice (-?\d+)/.exec(readFileSync(file, 'utf8')) : null;
  return nice === null ? null : Number(nice[1]);
}

/** Of each thread of a process; where threads have none of their own, that of the process. */
function priorities(pid: number): number[] {
  const threads = existsSync(`/proc/${pid}/task`) ? readdirSync(`/proc/${pid}/task`).map(Number) : [pid];
  return threads.map(getPriority);
}

describe('an import that runs', () => {
  const redis = useRedis();
  const serve = upstreamServers();
  beforeEach(async () => {
    const connection = await connectForWriting(redis().url);
    await connection.flushall(); // The lock of the import before, which was killed.
    connection.disconnect();
  });

  /** Runs an import of a list that does not end, and looks at its process meanwhile. @param start gives its process */
  async function whileImporting(
    collection: 'products' | 'companies',
    look: (pid: number) => void,
    start: (args: string[], settings: Record<string, string>) => Promise<number> | number,
  ): Promise<void> {
    let begun = () => {};
    const begins = new Promise<void>((resolve) => {
      begun = resolve;
    });
    const upstream = await serve((response) => {
      response.write('[');
      begun();
    });
    const settings = { REDIS_URL: redis().url, [`${collection.toUpperCase()}_URL`]: upstream.url().href };
    const pid = await start(['import', collection], settings);
    try {
      await begins;
      look(pid);
    } finally {
      process.kill(pid, 'SIGKILL');
    }
  }

  /** Alone in a session of its own. */
  const inOwnSession = (args: string[], settings: Record<string, string>) =>
    startMedref(args, settings, { detached: true }).process.pid as number;

  /** In the session of a shell that has just begun it. */
  async function inSessionOfShell(args: string[], settings: Record<string, string>): Promise<number> {
    const entry = fileURLToPath(new URL('../../dist/bin/medref.js', import.meta.url));
    const shell = spawn('sh', ['-c', '"$0" "$@" & echo $!; wait', process.execPath, entry, ...args], {
      detached: true,
      env: { PATH: process.env['PATH'], LOG_LEVEL: 'silent', ...settings },
      stdio: ['ignore', 'pipe', 'ignore'],
    });
    const [line] = (await once(shell.stdout, 'data')) as [Buffer];
    return Number(line.toString());
  }

  it('lets other processes go first, with all of its threads', async () => {
    await whileImporting(
      'products',
      (pid) => expect(new Set(priorities(pid))).to.deep.equal(new Set([lowFromHere])),
      inOwnSession,
    );
  });

  it('lets other sessions go first where it has one of its own, if sessions are weighed here', async function () {
    const idle = spawn('sleep', ['60'], { detached: true, stdio: 'ignore' });
    const before = sessionPriority(idle.pid as number);
    idle.kill('SIGKILL');
    if (before === null) return this.skip(); // Kernels without autogroups do not weigh sessions.
    expect(before).to.equal(0);
    await whileImporting('products', (pid) => expect(sessionPriority(pid)).to.equal(low), inOwnSession);
  });

  it('keeps a lower priority that it was started with', () => {
    const program = `
      const { giveWay } = await import('./bin/give-way.ts');
      giveWay();
      console.log((await import('node:os')).getPriority());`;
    const node = [process.execPath, '--import', 'tsx', '--input-type=module', '--eval', program];
    const cwd = fileURLToPath(new URL('../..', import.meta.url));
    const priority = execFileSync('nice', ['-n', '15', ...node], { cwd, encoding: 'utf8' });
    expect(Number(priority)).to.equal(Math.min(19, getPriority() + 15));
  });

  it('leaves the session of those who started it as it was, if sessions are weighed here', async function () {
    let weighed = true;
    await whileImporting(
      'companies',
      (pid) => {
        expect(getPriority(pid)).to.equal(lowFromHere);
        weighed = sessionPriority(pid) !== null;
        if (weighed) expect(sessionPriority(pid)).to.equal(0);
      },
      inSessionOfShell,
    );
    if (!weighed) this.skip(); // Likewise.
  });
});
