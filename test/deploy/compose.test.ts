import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdir, mkdtemp, readFile, rm, stat, utimes } from 'node:fs/promises';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { expect } from 'chai';
import { parse } from 'yaml';
import { workerStopMs } from '../../api/workers.ts';
import { onPath } from '../../bench/installed.ts';
import { startPrivateRedis } from '../../demo/private-redis.ts';
import { commands, read, root, settingsReadBy } from '../support/project-files.ts';

const run = promisify(execFile);

/** Returns the exit code of a program. */
async function ends(program: string, args: readonly string[]): Promise<number> {
  const [code] = await once(spawn(program, args, { stdio: 'ignore' }), 'close');
  return code;
}

interface Service {
  command: string[];
  entrypoint?: string[];
  profiles?: string[];
  environment?: Record<string, string>;
  healthcheck?: { test: string[] };
  stop_grace_period?: string;
  tmpfs?: string[];
  ports?: string[];
  read_only?: boolean;
  restart?: string;
  user?: string;
  volumes?: string[];
}

describe('the compose file', () => {
  const { services } = parse(read('docker-compose.yml'), { merge: true }) as {
    services: Record<string, Service>;
  };
  const service = (name: string) => services[name] as Service;

  it('has Redis, importer, API and a service for manual commands, each with health check and restart policy', () => {
    expect(Object.keys(services)).to.deep.equal(['redis', 'importer', 'operator', 'api']);
    expect(service('operator')).to.deep.include({ profiles: ['by-hand'], restart: 'no' });
    for (const name of ['redis', 'importer', 'api']) {
      expect(service(name).healthcheck?.test, name).to.be.an('array');
      expect(service(name).restart, name).to.equal('unless-stopped');
    }
  });

  it('expects PONG as user health, since redis-cli exits 0 after an error', async () => {
    const [kind, script = ''] = service('redis').healthcheck?.test ?? [];
    expect(kind).to.equal('CMD-SHELL');
    const cli = onPath('redis-cli');
    if (!cli) return; // The script is tested on every machine that has redis-cli.
    const folder = await mkdtemp(join(tmpdir(), 'medref-test-health-'));
    const aclfile = join(root, 'deploy/redis/users-6.2.acl');
    const login = { user: 'admin', password: 'admin-password' };
    const redis = await startPrivateRedis({ dataFolder: folder, settings: { aclfile }, login });
    const check = (port: number) =>
      run('sh', ['-c', script.replaceAll('$$', '$').replace('redis-cli', `${cli} -p ${port}`)]).then(
        () => 'healthy',
        () => 'unhealthy',
      );
    try {
      expect(await check(redis.port)).to.equal('healthy');
      await run(cli, [
        '-p',
        String(redis.port),
        '--user',
        'admin',
        '--pass',
        'admin-password',
        'ACL',
        'DELUSER',
        'health',
      ]);
      expect(await check(redis.port)).to.equal('unhealthy');
    } finally {
      await redis.stop();
      await rm(folder, { recursive: true });
    }
  });

  it('starts Redis with the users of deploy/redis/users.acl and passwords from the environment', async () => {
    const { entrypoint = [], command, environment = {} } = service('redis');
    const folder = await mkdtemp(join(tmpdir(), 'medref-test-compose-'));
    const passwords = Object.fromEntries(Object.keys(environment).map((name) => [name, `p-of-${name}`]));
    const [shell = '', flag = '', script = '', ...name] = entrypoint.map((it) => it.replaceAll('$$', '$'));
    const started = script
      .replaceAll('/run/', `${folder}/`)
      .replace('/users.acl >', `${join(root, 'deploy/redis/users.acl')} >`)
      .replace('chown redis ', 'ls ')
      .replace('exec docker-entrypoint.sh', 'echo');
    try {
      const { stdout } = await run(shell, [flag, started, ...name, ...command], {
        env: { ...process.env, ...passwords },
      });
      expect(stdout).to.include('redis-server --aclfile /run/users.acl --appendonly yes');
      expect(stdout, 'arguments that other users can see').not.to.include('p-of-');
      const users = await readFile(join(folder, 'users.acl'), 'utf8');
      for (const user of ['api', 'importer', 'operator', 'admin'])
        expect(users).to.include(`user ${user} on >p-of-REDIS_${user.toUpperCase()}_PASSWORD resetkeys `);
      for (const user of ['api', 'importer', 'operator']) {
        expect(service(user).environment?.['REDIS_URL']).to.equal(
          `redis://${user}:\${REDIS_${user.toUpperCase()}_PASSWORD}@redis:6379`,
        );
      }
      expect(users).not.to.match(/>\w+-password/);
      expect((await stat(join(folder, 'users.acl'))).mode & 0o777).to.equal(0o600);
    } finally {
      await rm(folder, { recursive: true });
    }
  });

  it('sets only settings, and for each process every setting that it reads', () => {
    for (const [name, command] of [
      ['importer', 'schedule'],
      ['operator', 'schedule'],
      ['api', 'serve'],
    ] as const) {
      expect(Object.keys(service(name).environment ?? {}), name).to.have.members(settingsReadBy(command));
    }
  });

  it('passes each setting through unchanged, except for addresses inside the containers', () => {
    const fixed = {
      ...{ API_HOST: '0.0.0.0', API_PORT: '3000', ADMIN_HOST: '0.0.0.0', ADMIN_PORT: '3001' },
    };
    for (const name of ['importer', 'api']) {
      for (const [setting, value] of Object.entries(service(name).environment ?? {})) {
        if (setting === 'BASE_URL' || setting === 'REDIS_URL') continue;
        const passedOn = `\${${setting}:-}`;
        expect(value, `${name}: ${setting}`).to.equal({ [setting]: passedOn, ...fixed }[setting]);
      }
    }
  });

  it('publishes API and admin listener only on loopback', () => {
    const { API_PORT, ADMIN_PORT } = service('api').environment ?? {};
    const published = [API_PORT, ADMIN_PORT].map((port) => `127.0.0.1:${port}:${port}`);
    expect(service('api').ports).to.deep.equal(published);
    for (const name of ['importer', 'redis']) expect(service(name).ports, name).to.equal(undefined);
    for (const name of ['importer', 'api'])
      expect(service(name)).to.include({ user: 'node', read_only: true });
  });

  it('checks whether the API is ready', async () => {
    const server = createServer((request, response) => {
      const isReady = request.url === '/health/ready' && responses.shift() === 'ready';
      response.writeHead(isReady ? 200 : 503).end('why');
    });
    const responses = ['ready', 'not ready'];
    await once(server.listen(0, '127.0.0.1'), 'listening');
    const { port } = server.address() as AddressInfo;
    const [, , ...args] = service('api').healthcheck?.test ?? [];
    const check = () =>
      ends(
        process.execPath,
        args.map((it) => it.replace(':3000/', `:${port}/`)),
      );
    expect([await check(), await check()]).to.deep.equal([0, 1]);
    server.close();
    server.closeAllConnections();
    expect(await check()).to.equal(1);
  });

  it("checks that the importer's folder was touched within a minute", async () => {
    const { healthcheck, tmpfs } = service('importer');
    expect(tmpfs).to.deep.equal(['/tmp']);
    const folder = await mkdtemp(join(tmpdir(), 'medref-test-heartbeat-'));
    const [, script = ''] = healthcheck?.test ?? [];
    const check = () => ends('sh', ['-c', script.replace('/tmp', folder)]);
    expect(await check(), 'without a schedule').to.equal(1);
    const heartbeat = join(folder, 'medref-schedule-medref');
    await mkdir(heartbeat);
    expect(await check()).to.equal(0);
    const before = new Date(Date.now() - 65_000);
    await utimes(heartbeat, before, before);
    expect(await check(), 'after a minute').to.equal(1);
    await rm(folder, { recursive: true });
  });

  it('gives each process longer to end than it may need', () => {
    const graceOf = (name: string) => Number(/^(\d+)s$/.exec(service(name).stop_grace_period ?? '')?.[1]);
    expect(graceOf('api')).to.be.above(workerStopMs / 1000);
    expect(graceOf('importer')).to.be.above(30);
  });

  it('runs commands that exist', () => {
    for (const name of ['importer', 'operator', 'api']) expect(commands).to.include(service(name).command[0]);
  });
});
