import { execFileSync } from 'node:child_process';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { constants, getPriority } from 'node:os';
import { fileURLToPath } from 'node:url';
import { expect } from 'chai';
import { startMedref } from '../support/medref.ts';
import { useRedis } from '../support/redis-server.ts';
import { upstreamServers } from '../support/upstream-server.ts';

const low = constants.priority.PRIORITY_BELOW_NORMAL;

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

  /** Runs an import of a list that does not end, and looks at its process meanwhile. */
  async function whileImporting(
    collection: 'products' | 'companies',
    options: { detached: boolean },
    look: (pid: number) => void,
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
    const command = startMedref(['import', collection], settings, options);
    try {
      await begins;
      look(command.process.pid as number);
    } finally {
      command.process.kill('SIGKILL');
      await command.ended;
    }
  }

  it('lets other processes go first, and other sessions where it has one of its own', async () => {
    await whileImporting('products', { detached: true }, (pid) => {
      expect(new Set(priorities(pid))).to.deep.equal(new Set([low]));
      expect(sessionPriority(pid)).to.be.oneOf([low, null]);
    });
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

  it('leaves the session of those who started it as it was', async () => {
    const before = sessionPriority(process.pid);
    await whileImporting('companies', { detached: false }, (pid) => expect(getPriority(pid)).to.equal(low));
    expect(sessionPriority(process.pid)).to.equal(before);
  });
});
