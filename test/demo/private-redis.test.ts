import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect } from 'chai';
import { startPrivateRedis } from '../../demo/private-redis.ts';
import { startTestRedis, type TestRedis } from '../support/redis-server.ts';

describe('A private Redis', () => {
  it('evicts nothing, frees what expires in the background, and writes to disk only when asked to', async () => {
    for (const appendOnly of [false, true]) {
      const redis = await startTestRedis({ appendOnly });
      expect(await ask(redis, 'CONFIG GET maxmemory-policy')).to.include('noeviction');
      expect(await ask(redis, 'CONFIG GET lazyfree-lazy-expire')).to.include('yes');
      expect(await ask(redis, 'CONFIG GET appendonly')).to.include(appendOnly ? 'yes' : 'no');
      expect(await ask(redis, 'CONFIG GET save')).to.include('$4\r\nsave\r\n$0\r\n');
      expect(await ask(redis, 'CONFIG GET bind')).to.include('\r\n127.0.0.1\r\n');
      await redis.stop();
    }
  });

  it('starts next to any number of others', async () => {
    const servers = await Promise.all(Array.from({ length: 8 }, () => startTestRedis()));
    expect(new Set(servers.map(({ port }) => port)).size).to.equal(8);
    for (const server of servers) expect(await ask(server, 'PING')).to.equal('+PONG\r\n+OK\r\n');
    await Promise.all(servers.map((server) => server.stop()));
  });

  it('says so when the port it must have is taken, even by another Redis that answers', async () => {
    const other = await startTestRedis();
    const dataFolder = await mkdtemp(join(tmpdir(), 'medref-test-redis-'));
    const error = await startPrivateRedis({ dataFolder, port: other.port }).then(() => undefined, String);
    expect(error).to.include(`did not start on port ${other.port}`).and.include('Address already in use');
    // Nothing goes on waiting for it, which would keep a process from ending.
    await new Promise((resolve) => setTimeout(resolve, 50));
    const asked = await connectionsOf(other);
    await new Promise((resolve) => setTimeout(resolve, 200));
    expect(await connectionsOf(other)).to.equal(asked + 1);
    await rm(dataFolder, { recursive: true });
    await other.stop();
  });

  it('comes back on the same port after a crash: with its data when that is kept, else empty', async () => {
    for (const appendOnly of [false, true]) {
      const redis = await startTestRedis({ appendOnly });
      await ask(redis, 'SET kept yes');
      await redis.kill();
      expect(await ask(redis, 'PING').catch(String)).to.include('ECONNREFUSED');
      await redis.restart();
      expect(await ask(redis, 'EXISTS kept')).to.include(appendOnly ? ':1' : ':0');
      await redis.stop();
    }
  });

  it('answers nothing while it is paused, and what was asked meanwhile when it is resumed', async () => {
    const redis = await startTestRedis();
    redis.pause();
    const answer = ask(redis, 'PING');
    const silence = new Promise((resolve) => setTimeout(resolve, 200, 'silence'));
    expect(await Promise.race([answer, silence])).to.equal('silence');
    redis.resume();
    expect(await answer).to.include('+PONG');
    await redis.stop();
  });

  it('stops in order, even when paused, as often as it is asked, and leaves nothing', async () => {
    const redis = await startTestRedis();
    const folder = /\$\d+\r\n(\/[^\r]+)/.exec(await ask(redis, 'CONFIG GET dir'))?.[1] as string;
    expect(existsSync(folder)).to.equal(true);
    redis.pause();
    const begun = Date.now();
    await redis.stop();
    await redis.stop();
    expect(Date.now() - begun).to.be.below(3_000);
    expect(existsSync(folder)).to.equal(false);
    expect(await ask(redis, 'PING').catch(String)).to.include('ECONNREFUSED');
  });
});

/** How many connections a server has had. */
async function connectionsOf(redis: TestRedis): Promise<number> {
  return Number(/total_connections_received:(\d+)/.exec(await ask(redis, 'INFO stats'))?.[1]);
}

/** What the server answers to one command, in its own notation. */
async function ask({ port }: TestRedis, command: string): Promise<string> {
  const socket = connect(port, '127.0.0.1');
  await once(socket, 'connect');
  socket.end(`${command}\r\nQUIT\r\n`);
  return Buffer.concat(await socket.toArray()).toString();
}
