import { type ChildProcess, execFile, execFileSync, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { connect, createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { expect } from 'chai';
import { bundled } from '../support/medref.ts';
import { startTestRedis } from '../support/redis-server.ts';

const project = fileURLToPath(new URL('../..', import.meta.url));

describe('The demo', function () {
  this.timeout(60_000);

  const folders: string[] = [];
  const demos: ChildProcess[] = [];
  let bundle: string;
  before(async () => {
    bundle = await bundled('demo/demo.ts');
  });
  after(() => {
    for (const demo of demos) if (demo.exitCode === null) demo.kill('SIGKILL');
    for (const folder of folders) rmSync(folder, { recursive: true, force: true });
  });

  const newFolder = () => {
    const folder = mkdtempSync(join(tmpdir(), 'medref-test-demo-'));
    folders.push(folder);
    return folder;
  };

  /** Starts a demo as a terminal does: in its own process group. */
  function startDemo(env: NodeJS.ProcessEnv, program = [bundle]) {
    const inherited = { ...process.env };
    delete inherited['REDIS_URL'];
    const demo = spawn(process.execPath, program, {
      cwd: project,
      env: { ...inherited, ...env },
      detached: true,
    });
    demos.push(demo);
    const pid = demo.pid as number;
    const output = { stdout: '', stderr: '' };
    demo.stdout.on('data', (text) => (output.stdout += text));
    demo.stderr.on('data', (text) => (output.stderr += text));
    const ended = once(demo, 'close').then(([code, signal]) => code ?? signal);
    return {
      pid,
      output,
      ended,
      /** Waits until the demo has printed its complete welcome. Returns its values. */
      async welcome() {
        while (!output.stdout.includes('Ctrl-C')) {
          if (demo.exitCode !== null) throw new Error(`The demo ended (${demo.exitCode}): ${output.stderr}`);
          await sleep(20);
        }
        const address = /address +(\S+)/.exec(output.stdout)?.[1] as string;
        const key = /key +(\S+)/.exec(output.stdout)?.[1] as string;
        return {
          address,
          key,
          port: Number(new URL(address).port),
          curls: output.stdout.match(/curl .*/g) ?? [],
        };
      },
      async progress(text: string) {
        while (!output.stderr.includes(text)) {
          if (demo.exitCode !== null) throw new Error(`The demo ended (${demo.exitCode}): ${output.stderr}`);
          await sleep(5);
        }
      },
      /** Presses Ctrl-C: the terminal sends a signal to the complete process group. */
      async pressCtrlC() {
        process.kill(-pid, 'SIGINT');
        return ended;
      },
    };
  }

  // These tests run one demo repeatedly on one folder. Each run begins with the data that the last run left.
  describe('in one folder', () => {
    // A failed test must not leave its demo to the next one.
    afterEach(async () => {
      for (const demo of demos.splice(0)) {
        if (demo.exitCode !== null || demo.signalCode !== null) continue;
        demo.kill('SIGKILL');
        await once(demo, 'close');
      }
    });
    const settings: Record<string, string> = {};
    let version = '';
    let firstKey = '';
    before(() => {
      settings['DEMO_FOLDER'] = newFolder();
      settings['API_PORT'] = String(somePort());
    });

    it('serves its catalogue at the printed address with the printed key, skips busy ports, until Ctrl-C', async () => {
      const wanted = Number(settings['API_PORT']);
      const others = [createServer().listen(wanted, '127.0.0.1'), createServer().listen(wanted + 1)];
      // Starts it from the sources, as "npm run demo" does.
      const demo = startDemo(settings, ['--import', 'tsx', 'demo/demo.ts']);
      const { address, key, port, curls } = await demo.welcome();
      for (const other of others) other.close();
      expect(address).to.equal(`http://127.0.0.1:${wanted + 2}`);
      expect(demo.output.stderr).to.include('companies: published');
      [, version = ''] = /products: published, version (\d+)/.exec(demo.output.stderr) ?? [];
      expect(version, demo.output.stderr).to.match(/^20\d{12}$/);

      expect(curls).to.have.length(3);
      const [list, single, companies] = await Promise.all(curls.map(paste));
      expect(list._meta).to.deep.equal({ totalCount: 5_000, pageCount: 25, currentPage: 1, perPage: 200 });
      expect(list.data).to.have.length(200);
      expect(single).to.deep.equal({ data: list.data[0], success: true });
      expect(companies._meta).to.deep.equal({ totalCount: 300, pageCount: 60, currentPage: 2, perPage: 5 });
      expect(companies._links.next.href).to.equal(`${address}/companies?page=3&per-page=5`);

      const [, docs = ''] = /read, try +(\S+)/.exec(demo.output.stdout) ?? [];
      expect((await fetch(docs)).status).to.equal(200);
      const [, dashboard = ''] = /dashboard +(\S+)/.exec(demo.output.stdout) ?? [];
      const shown = async (page: string) => (await fetch(`${dashboard}/${page}?collection=companies`)).text();
      expect((await shown('imports')).match(/badge (published|refused)"/g)).to.deep.equal([
        ...['badge refused"', 'badge published"', 'badge published"'],
      ]);
      expect(await shown('rejects'))
        .to.include('rejected 2 records')
        .and.include('<mark>');
      const [diff = ''] = /diff\?[^"]+/.exec(await shown('versions')) ?? [];
      const changes = await (await fetch(`${dashboard}/${diff.replaceAll('&amp;', '&')}`)).text();
      expect(changes).to.include('5 added').and.include('11 changed').and.include('4 removed');

      const another = startDemo(settings);
      expect(await another.ended).to.equal(1);
      expect(another.output.stderr).to.include(
        `A demo is already running in ${settings['DEMO_FOLDER']} (process ${demo.pid}, ${address}). Use it, stop it, or set DEMO_FOLDER`,
      );
      expect(another.output.stderr.trim().split('\n')).to.have.length(1);
      expect(await statusOf(address, key)).to.equal(200);

      const children = childrenOf(demo.pid);
      expect(children.some((pid) => /redis-server|valkey-server/.test(commandOf(pid)))).to.equal(true);
      expect(await demo.pressCtrlC()).to.equal(0);
      await expectGone(children);
      expect(await isListening(port)).to.equal(false);
      firstKey = key;
    });

    it('ends its child processes when it is killed', async () => {
      const demo = startDemo(settings);
      await demo.progress('importing');
      const children = childrenOf(demo.pid);
      expect(children).not.to.have.length(0);
      process.kill(demo.pid, 'SIGKILL');
      await expectGone(children, 10_000);
    });

    it('serves its data again with the same keys, and reports a crash of its private Redis', async () => {
      const demo = startDemo(settings);
      const { address, key, port } = await demo.welcome();
      expect(port).to.equal(Number(settings['API_PORT']));
      expect(demo.output.stderr)
        .to.include(`products: unchanged, version ${version}`)
        .and.include('companies: unchanged');
      expect(key).to.equal(firstKey);
      const [, limited = ''] = /with rate +(\S+) \(5\/s\)/.exec(demo.output.stdout) ?? [];
      const rated = await fetch(`${address}/products/1`, { headers: { authorization: `Bearer ${limited}` } });
      expect(rated.headers.get('ratelimit-policy')).to.equal('"default";q=5;w=1');
      expect(await statusOf(address, key)).to.equal(200);

      const children = childrenOf(demo.pid);
      const redis = children.find((pid) => /redis-server|valkey-server/.test(commandOf(pid))) as number;
      process.kill(redis, 'SIGKILL');
      expect(await demo.ended).to.equal(1);
      expect(demo.output.stderr).to.include(
        'The private Redis of the demo has ended (SIGKILL), so the demo ends, too.\n',
      );
      await expectGone(children);
      expect(await isListening(port)).to.equal(false);
    });

    for (const [step, signal] of [
      ['starting a private Redis', 'SIGINT'],
      ['importing', 'SIGTERM'],
    ] as const) {
      it(`ends gracefully when ${signal} comes during ${step}`, async () => {
        const demo = startDemo(settings);
        await demo.progress(step);
        await sleep(100);
        const children = childrenOf(demo.pid);
        process.kill(signal === 'SIGINT' ? -demo.pid : demo.pid, signal);
        expect(await demo.ended).to.equal(0);
        expect(demo.output.stdout).to.equal('');
        expect(demo.output.stderr.trim().split('\n').at(-1)).to.include(
          step === 'starting a private Redis' ? 'demo: ' : step,
        );
        await expectGone(children);
        expect(readdirSync(settings['DEMO_FOLDER'] as string)).to.deep.equal(['keys.json', 'redis']);
      });
    }

    it('checks its settings before it starts anything', async () => {
      const demo = startDemo({ ...settings, CORS_ORIGINS: 'nonsense', API_PORT: 'abc' });
      expect(await demo.ended).to.equal(1);
      expect(demo.output.stderr).to.match(/^API_PORT is "abc".*\nCORS_ORIGINS is "nonsense".*\n$/);
    });

    it('prints the output of a failed command', async () => {
      const demo = startDemo({ ...settings, REDIS_URL: 'redis://127.0.0.1:1' });
      expect(await demo.ended).to.equal(1);
      expect(demo.output.stderr).to.match(/"medref status" failed \(1\)\. Output:\nRedis .*127\.0\.0\.1:1/);
    });
  });

  it('uses the server of REDIS_URL, without touching its other keys or its life', async () => {
    const redis = await startTestRedis();
    await command(redis.port, 'SET medref:mine 1');
    const folder = newFolder();
    // Settings of the real service must not reach the demo.
    const settings = {
      DEMO_FOLDER: folder,
      API_PORT: String(somePort()),
      REDIS_URL: redis.url,
      KEY_PREFIX: 'medref',
      BASE_URL: 'https://x.example',
    };
    const demo = startDemo(settings);
    const { address, key } = await demo.welcome();
    const response = await fetch(`${address}/products`, { headers: { authorization: `Bearer ${key}` } });
    expect(await response.text()).to.include(`"self":{"href":"${address}/products?`);
    process.kill(demo.pid, 'SIGTERM');
    expect(await demo.ended).to.equal(0);
    expect(existsSync(join(folder, 'redis')), 'a private Redis').to.equal(false);
    expect(await command(redis.port, 'EXISTS medref-demo:keys')).to.include(':1');
    expect(await command(redis.port, 'KEYS medref:*'))
      .to.include('*1\r\n')
      .and.include('medref:mine');
    await redis.stop();
  });
});

/** Runs a line as a user does who pastes it into a shell. Without curl on this machine, sends the same request itself. */
async function paste(line: string) {
  if (spawnSync('curl', ['--version']).status === 0) {
    const { stdout } = await promisify(execFile)('sh', ['-c', line]);
    return JSON.parse(stdout);
  }
  const [, authorization, url] = /^curl -s -H 'Authorization: (.+?)' '(.+?)'$/.exec(line) as unknown as [
    string,
    string,
    string,
  ];
  return (await fetch(url, { headers: { authorization } })).json();
}

async function statusOf(address: string, key: string): Promise<number> {
  return (await fetch(`${address}/products/1`, { headers: { authorization: `Bearer ${key}` } })).status;
}

/** Returns a port below those of outgoing connections and of private Redis servers. Its neighbours are probably free. */
function somePort(): number {
  return 11_000 + Math.floor(Math.random() * 8_000);
}

async function isListening(port: number): Promise<boolean> {
  const socket = connect(port, '127.0.0.1');
  try {
    await once(socket, 'connect');
    return true;
  } catch {
    return false;
  } finally {
    socket.destroy();
  }
}

/** Returns the reply of a Redis server to one command, in the Redis protocol. */
async function command(port: number, line: string): Promise<string> {
  const socket = connect(port, '127.0.0.1').end(`${line}\r\nQUIT\r\n`);
  return Buffer.concat(await socket.toArray()).toString();
}

// Reads processes from /proc if it exists, because small systems have no ps. A zombie counts as ended.

interface Process {
  pid: number;
  parent: number;
  state: string;
}

function processes(): Process[] {
  if (!existsSync('/proc/self/stat')) {
    const table = execFileSync('ps', ['-A', '-o', 'pid=,ppid=,state='], { encoding: 'utf8' })
      .trim()
      .split('\n');
    return table
      .map((row) => row.trim().split(/\s+/))
      .map(([pid, parent, state = '']) => ({ pid: Number(pid), parent: Number(parent), state }));
  }
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .flatMap((pid) => {
      try {
        const [state = '', parent] = readFileSync(`/proc/${pid}/stat`, 'utf8')
          .replace(/^.*\) /s, '')
          .split(' ');
        return [{ pid: Number(pid), parent: Number(parent), state }];
      } catch {
        return []; // The process has just ended.
      }
    });
}

const childrenOf = (parent: number) =>
  processes()
    .filter((it) => it.parent === parent)
    .map(({ pid }) => pid);
const isRunning = (pid: number) => processes().some((it) => it.pid === pid && !it.state.startsWith('Z'));

/** Expects that these processes end. The guard of the others ends a moment after the demo. */
async function expectGone(pids: readonly number[], withinMs = 1_000): Promise<void> {
  for (const deadline = Date.now() + withinMs; pids.some(isRunning); await sleep(20)) {
    if (Date.now() > deadline)
      expect.fail(`These outlived the demo: ${pids.filter(isRunning).map(commandOf)}`);
  }
}

function commandOf(pid: number): string {
  return existsSync('/proc/self/stat')
    ? readFileSync(`/proc/${pid}/cmdline`, 'utf8')
    : execFileSync('ps', ['-p', String(pid), '-o', 'command='], { encoding: 'utf8' });
}
