// Tests each command of the operators' pages, with the documented wrapper and as the documented user of Redis.

import { execFile } from 'node:child_process';
import { copyFile, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect } from 'chai';
import { Redis } from 'ioredis';
import { onPath } from '../../bench/installed.ts';
import { type PrivateRedis, startPrivateRedis } from '../../demo/private-redis.ts';
import { beginMedref, medref } from '../support/medref.ts';
import { commands as offered, read, root } from '../support/project-files.ts';
import { products } from '../support/records.ts';
import { majorVersion, withUser } from '../support/redis-users.ts';
import { startUpstreamServer, type UpstreamServer } from '../support/upstream-server.ts';

const text = ['INSTALL', 'CONFIGURATION', 'REDIS', 'RUNBOOK'].map((it) => read(`docs/${it}.md`)).join('\n');
const lines = text.split('\n').map((line) => line.trim().replace(/^\$ /, ''));
const inline = [...text.matchAll(/(?<!`)`([^`\n]+)`(?!`)/g)].map(([, code = '']) => code);
const all = [...new Set([...lines, ...inline])].map((line) => line.replace(/ +#.*$|(?<=\S) {3,}\S.*$/, ''));

/** Commands of operators, without commands that a table describes and commands that run until they are stopped. */
const commands = [
  ...new Set(
    all.flatMap((line) => {
      const [, args] =
        /^(?:medref|docker compose run --rm operator|kubectl .*exec deployment\/medref-operator -- node \S+) (.*)$/.exec(
          line,
        ) ?? [];
      const [name = ''] = args?.split(' ') ?? [];
      const isOne = [...offered, 'keys'].includes(name) && !['serve', 'schedule'].includes(name);
      return isOne &&
        !/[[<|…]/.test(args ?? '') &&
        !/^keys( \w+)?$|^diff$|^publish$/.test(args?.replace('keys list', '') ?? '')
        ? [args as string]
        : [];
    }),
  ),
];
const adminCommands = all.filter((line) => line.startsWith('redis-cli ') && !line.includes('…'));
const redisCli = onPath('redis-cli') ?? onPath('valkey-cli');

interface Ended {
  readonly code: number;
  readonly output: string;
}

describe('the documented commands', function () {
  this.timeout(120_000);
  let folder: string;
  let redis: PrivateRedis;
  let upstream: UpstreamServer;
  let list: readonly object[] = [];
  let options: Parameters<typeof startPrivateRedis>[0];
  before(async () => {
    folder = await mkdtemp(join(tmpdir(), 'medref-test-commands-'));
    const aclfile = join(folder, 'users.acl');
    const file = majorVersion() < 7 ? 'users-6.2.acl' : 'users.acl';
    await copyFile(join(root, 'deploy/redis', file), aclfile);
    options = {
      ...{ dataFolder: join(folder, 'data'), appendOnly: true, settings: { aclfile } },
      login: { user: 'admin', password: 'admin-password' },
    };
    redis = await startPrivateRedis(options);
    upstream = await startUpstreamServer((response) => {
      response.setHeader('content-type', 'application/json').end(JSON.stringify(list));
    });
    const secrets = (user: string) => `REDIS_URL=${withUser(redis.url, user as 'operator')}\n`;
    await writeFile(
      join(folder, 'importer.env'),
      `${secrets('importer')}PRODUCTS_URL=${upstream.url().href}\n`,
    );
    await writeFile(join(folder, 'operator.env'), secrets('operator'));
    const [, script = ''] =
      /make a script `\/usr\/local\/bin\/medref`[\s\S]*?```sh\n([\s\S]*?)```/.exec(text) ?? [];
    await writeFile(
      join(folder, 'medref'),
      script
        .replaceAll('/etc/medref', folder)
        .replace('/usr/bin/node', process.execPath)
        .replace('/opt/medref/', root),
      { mode: 0o755 },
    );
  });
  after(async () => {
    await upstream.close();
    await redis.stop();
    await rm(folder, { recursive: true });
  });

  /** Runs a line in a shell, in the folder of the test. */
  const run = (line: string, env: Record<string, string> = {}) =>
    new Promise<Ended>((resolve) => {
      const given = { PATH: `${folder}:${process.env['PATH']}`, LOG_LEVEL: 'warn', ...env };
      execFile('sh', ['-c', line], { cwd: folder, env: given }, (error, stdout, stderr) =>
        resolve({ code: error ? Number(error.code) : 0, output: `${stdout}${stderr}` }),
      );
    });

  it('were found', () => {
    expect(commands).to.include.members(['status', 'rollback products', 'keys list', 'verify --repair']);
    expect(commands.length).to.be.above(18);
    expect(adminCommands.length).to.be.above(6);
    for (const line of adminCommands) expect(line).to.match(/^redis-cli --user admin /);
  });

  describe('run as the user operator', () => {
    const operator = () => ({
      REDIS_URL: withUser(redis.url, 'operator'),
      PRODUCTS_URL: upstream.url().href,
    });
    /** How much the list has grown, so that each candidate has other records. */
    let grown = 0;
    before(async () => {
      for (list of [products(300), [...products(299), { product: { id: 302 } }]])
        await medref(['import', '--force'], operator());
    });

    for (const args of commands)
      it(`medref ${args}`, async () => {
        if (args.startsWith('rollback')) {
          await medref(['resume', 'products'], operator());
          await medref(['import', '--force'], operator());
        }
        if (/candidate|^publish|^discard/.test(args)) {
          await medref(['resume', 'products'], operator());
          list = products(300 + ++grown);
          await medref(['import'], { ...operator(), PUBLISH: 'manual' });
        }
        const made = await medref(['keys', 'create', '--client', 'x', '--json'], operator());
        const { versions } = (await medref(['versions', 'products', '--json'], operator())).json<{
          versions: { version: number }[];
        }>();
        const { collections } = (await medref(['status', '--json'], operator())).json<{
          collections: { candidate: { version: number } | null }[];
        }>();
        const candidate = String(collections[0]?.candidate?.version);
        const numbers = versions.map(({ version }) => String(version)).reverse();
        const line = args
          .replace(/(?<=--candidate )\d+/, candidate)
          .replace(/\b[0-9a-f]{12}\b/, made.json<{ id: string }>().id)
          .replace(/(?<!--candidate )\b\d{14}\b/g, () => numbers.shift() as string);
        const { code, output } = await run(`medref ${line}`);
        expect(output).not.to.match(/NOPERM|may not/);
        // An import that a check refuses has worked, too.
        expect(code, output).to.be.oneOf(line.startsWith('import') ? [0, 3] : [0]);
      });
  });

  it('change a password without a restart of Redis, while readers are served', async () => {
    const admin = new Redis(redis.port, { username: 'admin', password: 'admin-password' });
    const operator = { REDIS_URL: withUser(redis.url, 'operator'), PRODUCTS_URL: upstream.url().href };
    list = products(300);
    await medref(['import', '--force'], operator);
    const made = await medref(['keys', 'create', '--client', 'y', '--json'], operator);
    const { key } = made.json<{ key: string }>();
    const serve = async (password: string) => {
      const url = withUser(redis.url, 'api').replace('api-password', password);
      const api = beginMedref(['serve', '--json'], { REDIS_URL: url, API_PORT: '0', LOG_LEVEL: 'silent' });
      const [, address = ''] = await api.line(/"address":"([^"]+)"/);
      const status = async () => {
        const reply = await fetch(`${address}/products/1`, { headers: { authorization: `Bearer ${key}` } });
        return reply.status;
      };
      return { status, stop: api.stop };
    };
    const old = await serve('api-password');
    expect(await old.status()).to.equal(200);
    await admin.call('ACL', 'SETUSER', 'api', '>new-password');
    await admin.call('ACL', 'SAVE');
    const next = await serve('new-password');
    expect([await old.status(), await next.status()]).to.deep.equal([200, 200]);
    await old.stop();
    await admin.call('ACL', 'SETUSER', 'api', '<api-password');
    await admin.call('ACL', 'SAVE');
    expect(await next.status()).to.equal(200);
    await next.stop();
    await admin.quit();

    await redis.stop();
    redis = await startPrivateRedis({ ...options, port: redis.port });
    const { warnings } = (await medref(['status', '--json'], operator)).json<{ warnings: string[] }>();
    expect(warnings.filter((it) => it.includes('restart'))).to.deep.equal([]);
    const [refused, again] = [await serve('api-password'), await serve('new-password')];
    expect([await refused.status(), await again.status()]).to.deep.equal([503, 200]);
    await Promise.all([refused.stop(), again.stop()]);
  });

  const missing = redisCli ? '' : ' (left out: redis-cli is not installed)';
  describe(`run as the user admin${missing}`, () => {
    for (const line of redisCli ? adminCommands : [])
      it(line, async () => {
        const shim = `#!/bin/sh\nexec ${redisCli} -p ${redis.port} "$@"\n`;
        await writeFile(join(folder, 'redis-cli'), shim, { mode: 0o755 });
        const { code, output } = await run(line.replace('<old-', '<importer-'), {
          REDISCLI_AUTH: 'admin-password',
        });
        expect(output).not.to.match(/NOPERM|NOAUTH|WRONGPASS|\(error\)|^ERR/m);
        expect(code, output).to.equal(0);
        if (line.includes('--rdb'))
          expect((await readFile(join(folder, 'medref.rdb'))).length).to.be.above(1_000);
        if (!line.includes('SHUTDOWN')) return;
        await redis.ended;
        redis = await startPrivateRedis({ ...options, port: redis.port });
      });
  });
});
