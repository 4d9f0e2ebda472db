import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { expect } from 'chai';
import { startPrivateRedis } from '../../../demo/private-redis.ts';
import {
  connectForListening,
  connectForServing,
  connectForWriting,
} from '../../../shared/redis/connections.ts';
import { RedisUnavailableError } from '../../../shared/redis/failures.ts';
import { useRedis } from '../../support/redis-server.ts';

describe('a connection to a database that the server does not have', () => {
  const server = useRedis();
  const url = () => `${server().url}/99`;

  it('asks nothing of another database: for serving, commands fail, and it never gets ready', async () => {
    const redis = connectForServing(url());
    try {
      let isReady = false;
      redis.on('ready', () => {
        isReady = true;
      });
      const reason = new Promise<string>((resolve) => redis.once('error', ({ message }) => resolve(message)));
      expect(await reason).to.match(/DB index is out of range/);
      await sleep(700); // It tries again meanwhile.
      const failure = await redis.set('medref:probe', 'here').catch((error: Error) => error);
      expect(failure).to.be.an('error');
      expect(isReady).to.equal(false);
    } finally {
      redis.disconnect();
    }
  });

  it('cannot be had for writing', async () => {
    const failure = await connectForWriting(url()).catch((error: Error) => error);
    expect(failure).to.be.instanceOf(RedisUnavailableError);
    expect((failure as Error).message).to.match(/^Redis at 127\.0\.0\.1:\d+ cannot be used: .*\.$/);
  });

  it('has left nothing in any database', async () => {
    const listener = connectForListening(url());
    await sleep(200);
    listener.disconnect();
    const redis = await connectForWriting(server().url);
    expect(await redis.keys('*')).to.deep.equal([]);
    redis.disconnect();
  });

  it('is served again once the server has the database', async () => {
    const redis = connectForServing(`${server().url}/15`);
    await new Promise((resolve) => redis.once('ready', resolve));
    await redis.set('medref:probe', 'here');
    expect(await redis.get('medref:probe')).to.equal('here');
    await redis.del('medref:probe');
    redis.disconnect();
  });
});

describe('a connection by the socket of a server', () => {
  it('is to its user and its database', async () => {
    const folder = await mkdtemp(join(tmpdir(), 'medref-'));
    const path = join(folder, 'redis.sock');
    const server = await startPrivateRedis({ dataFolder: folder, settings: { unixsocket: path } });
    const urls = [`unix:${path}`, `unix://some:pass%40word@${path}?db=3`] as const;
    try {
      const usual = await connectForWriting(urls[0]);
      await usual.call('ACL', 'SETUSER', 'some', 'on', '>pass@word', 'allkeys', 'allcommands');
      const redis = await connectForWriting(urls[1]);
      expect(await redis.call('ACL', 'WHOAMI')).to.equal('some');
      await redis.set('medref:probe', 'here');
      await usual.select(3);
      expect(await usual.get('medref:probe')).to.equal('here');
      for (const it of [usual, redis]) it.disconnect();
    } finally {
      await server.stop();
      await rm(folder, { recursive: true });
    }
    const failure = await connectForWriting(urls[1]).catch(({ message }: Error) => message);
    expect(failure).to.include(`Redis at ${path} cannot be used`).and.not.include('word');
  });
});

describe('a connection for serving', () => {
  const server = useRedis();

  it('tells how long one command in eight took, and of none that is not answered', async () => {
    const trips: number[] = [];
    const redis = connectForServing(server().url, { onRoundTrip: (ms) => trips.push(ms) });
    const askEight = (ask: () => Promise<unknown>) =>
      Promise.all(Array.from({ length: 8 }, () => ask().catch(() => null)));
    try {
      await new Promise((resolve) => redis.once('ready', resolve));
      await sleep(50);
      trips.length = 0;
      for (let turn = 0; turn < 5; turn += 1) await askEight(() => redis.get('medref:x'));
      expect(trips).to.have.length(5);
      await askEight(() => redis.call('NONSENSE'));
      expect(trips, 'a refusal is a reply').to.have.length(6);

      server().pause();
      const asked = askEight(() => redis.get('medref:x'));
      await sleep(300);
      server().resume();
      await asked;
      expect(trips.at(-1)).to.be.within(250, 1_400);

      await server().kill();
      await askEight(() => redis.get('medref:x'));
      expect(trips, 'without a reply').to.have.length(7);
    } finally {
      redis.disconnect();
    }
  });
});
