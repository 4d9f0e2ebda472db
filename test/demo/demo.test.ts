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
import { startTestRedis } from '../support/redis-server.ts';

const project = fileURLToPath(new URL('../..', import.meta.url));

describe('The demo', function () {
  this.timeout(60_000);

  const folders: string[] = [];
  const demos: ChildProcess[] = [];
  after(() => {
    for (const demo of demos) if (demo.exitCode === null) demo.kill('SIGKILL');
    for (const folder of folders) rmSync(folder, { recursive: true, force: true });
  });

  const newFolder = () => {
    const folder = mkdtempSync(join(tmpdir(), 'medref-test-demo-'));
    folders.push(folder);
    return folder;
  };

  /** Starts a demo as a terminal does: in a process group of its own. */
  function startDemo(env: NodeJS.ProcessEnv) {
    const inherited = { ...process.env };
    delete inherited['REDIS_URL'];
    const demo = spawn(process.execPath, ['--import', 'tsx', 'demo/demo.ts'], {
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
      /** What it printed, once it has printed all of it. */
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
      /** Ctrl-C: the terminal signals the whole process group. */
      async pressCtrlC() {
        process.kill(-pid, 'SIGINT');
        return ended;
      },
    };
  }

  it('serves its catalogue on the address and with the key that it prints, until Ctrl-C, and again', async () => {
    const folder = newFolder();
    const settings = { DEMO_FOLDER: folder, API_PORT: String(somePort()) };
    const first = startDemo(settings);
    const { address, key, port, curls } = await first.welcome();
    expect(port).to.equal(Number(settings.API_PORT));
    expect(first.output.stderr).to.include('companies: published');
    const [, version] = /products: published, version (\d+)/.exec(first.output.stderr) ?? [];
    expect(version, first.output.stderr).to.match(/^20\d{12}$/);

    expect(curls).to.have.length(3);
    const [list, single, companies] = await Promise.all(curls.map(paste));
    expect(list._meta).to.deep.equal({ totalCount: 5_000, pageCount: 25, currentPage: 1, perPage: 200 });
    expect(list.data).to.have.length(200);
    expect(single).to.deep.equal({ data: list.data[0], success: true });
    expect(companies._meta).to.deep.equal({ totalCount: 300, pageCount: 60, currentPage: 2, perPage: 5 });
    expect(companies._links.next.href).to.equal(`${address}/companies?page=3&per-page=5`);

    const [, docs = ''] = /read, try +(\S+)/.exec(first.output.stdout) ?? [];
    expect((await fetch(docs)).status).to.equal(200);
    const [, dashboard = ''] = /dashboard +(\S+)/.exec(first.output.stdout) ?? [];
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

    const children = childrenOf(first.pid);
    expect(children.length).to.be.at.least(2);
    expect(await first.pressCtrlC()).to.equal(0);
    expect(children.filter(isRunning)).to.deep.equal([]);
    expect(await isListening(port)).to.equal(false);

    const second = startDemo(settings);
    const again = await second.welcome();
    expect(second.output.stderr)
      .to.include(`products: unchanged, version ${version}`)
      .and.include('companies: unchanged');
    expect(again.key).not.to.equal(key);
    expect(await statusOf(again.address, again.key)).to.equal(200);
    expect(await statusOf(again.address, key), 'the key of the first run').to.equal(401);
    expect(await second.pressCtrlC()).to.equal(0);
  });

  it('uses the server of REDIS_URL, whose other keys and whose life it leaves alone', async () => {
    const redis = await startTestRedis();
    await command(redis.port, 'SET medref:mine 1');
    const folder = newFolder();
    // Settings of the real service do not reach the demo.
    const settings = {
      DEMO_FOLDER: folder,
      API_PORT: String(somePort()),
      REDIS_URL: redis.url,
      KEY_PREFIX: 'medref',
      BASE_URL: 'https://x.example',
    };
    const demo = startDemo(settings);
    const { address, key } = await demo.welcome();
    const answer = await fetch(`${address}/products`, { headers: { authorization: `Bearer ${key}` } });
    expect(await answer.text()).to.include(`"self":{"href":"${address}/products?`);
    expect(await demo.pressCtrlC()).to.equal(0);
    expect(existsSync(join(folder, 'redis')), 'a private Redis').to.equal(false);
    expect(await command(redis.port, 'HLEN medref-demo:keys')).to.include(':1');
    expect(await command(redis.port, 'KEYS medref:*'))
      .to.include('*1\r\n')
      .and.include('medref:mine');
    await redis.stop();
  });

  it('passes over ports that are taken, and says what to do where a demo is running already', async () => {
    const port = somePort();
    const others = [createServer().listen(port, '127.0.0.1'), createServer().listen(port + 1)];
    const settings = { DEMO_FOLDER: newFolder(), API_PORT: String(port) };
    const first = startDemo(settings);
    const { address, key } = await first.welcome();
    expect(address).to.equal(`http://127.0.0.1:${port + 2}`);
    for (const other of others) other.close();
    const second = startDemo(settings);
    expect(await second.ended).to.equal(1);
    expect(second.output.stderr).to.include(
      `A demo is running already on ${settings.DEMO_FOLDER} (process ${first.pid}): use that one, or stop it, or set DEMO_FOLDER`,
    );
    expect(second.output.stderr.trim().split('\n')).to.have.length(1);
    expect(await statusOf(address, key)).to.equal(200);
    process.kill(first.pid, 'SIGTERM');
    expect(await first.ended).to.equal(0);
  });

  for (const [part, name] of [
    ['redis-server|valkey-server', 'private Redis'],
    ['medref.ts', 'API'],
  ] as const) {
    it(`says why it ends when its ${name} crashes, and stops the others`, async () => {
      const demo = startDemo({ DEMO_FOLDER: newFolder(), API_PORT: String(somePort()) });
      const { port } = await demo.welcome();
      const children = childrenOf(demo.pid);
      process.kill(children.find((pid) => new RegExp(part).test(commandOf(pid))) as number, 'SIGKILL');
      expect(await demo.ended).to.equal(1);
      expect(demo.output.stderr).to.include(
        `The ${name} of the demo ended by itself (SIGKILL), so the demo ends too.\n`,
      );
      expect(children.filter(isRunning)).to.deep.equal([]);
      expect(await isListening(port)).to.equal(false);
    });
  }

  it('says what a command of it said that failed', async () => {
    const demo = startDemo({ DEMO_FOLDER: newFolder(), API_PORT: 'seven' });
    expect(await demo.ended).to.equal(1);
    expect(demo.output.stderr).to.match(/"medref status" failed \(2\)\. It said:\nAPI_PORT .*seven/);
  });

  for (const step of ['starting a private Redis', 'importing', 'starting the API']) {
    it(`ends in order when Ctrl-C comes before it is up: while it is ${step}`, async () => {
      const folder = newFolder();
      const demo = startDemo({ DEMO_FOLDER: folder, API_PORT: String(somePort()) });
      await demo.progress(step);
      await sleep(100);
      const children = childrenOf(demo.pid);
      expect(await demo.pressCtrlC()).to.equal(0);
      expect(demo.output.stdout).to.equal('');
      expect(demo.output.stderr.trim().split('\n').at(-1)).to.include(
        step === 'starting a private Redis' ? 'demo: ' : step,
      );
      expect(children.filter(isRunning)).to.deep.equal([]);
      expect(readdirSync(folder)).to.deep.equal(['redis']);
    });
  }

  it('takes what it started with it when it is killed, and the next one starts all the same', async () => {
    const settings = { DEMO_FOLDER: newFolder(), API_PORT: String(somePort()) };
    const killed = startDemo(settings);
    const { port } = await killed.welcome();
    const children = childrenOf(killed.pid);
    process.kill(killed.pid, 'SIGKILL');
    for (const deadline = Date.now() + 10_000; children.some(isRunning); await sleep(20)) {
      if (Date.now() > deadline)
        expect.fail(`These outlived the demo: ${children.filter(isRunning).map(commandOf)}`);
    }
    expect(await isListening(port)).to.equal(false);

    const next = startDemo(settings);
    await next.progress('products: unchanged');
    expect(await next.pressCtrlC()).to.equal(0);
  });
});

/** Runs a line as a user who pastes it into a shell does; without curl on this machine, does what curl would. */
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

/** Below the ports of outgoing connections and of private Redis servers; its neighbours are most likely free. */
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

/** What a Redis server answers to one command, in its own notation. */
async function command(port: number, line: string): Promise<string> {
  const socket = connect(port, '127.0.0.1').end(`${line}\r\nQUIT\r\n`);
  return Buffer.concat(await socket.toArray()).toString();
}

// Processes: from /proc where there is one, because small systems have no ps; a zombie has ended.

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
        return []; // it has just ended
      }
    });
}

const childrenOf = (parent: number) =>
  processes()
    .filter((it) => it.parent === parent)
    .map(({ pid }) => pid);
const isRunning = (pid: number) => processes().some((it) => it.pid === pid && !it.state.startsWith('Z'));

function commandOf(pid: number): string {
  return existsSync('/proc/self/stat')
    ? readFileSync(`/proc/${pid}/cmdline`, 'utf8')
    : execFileSync('ps', ['-p', String(pid), '-o', 'command='], { encoding: 'utf8' });
}
