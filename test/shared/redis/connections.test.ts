import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { expect } from 'chai';
import type { Redis as OneServer } from 'ioredis';
import { startPrivateRedis } from '../../../demo/private-redis.ts';
import {
  connectForListening,
  connectForServing,
  connectForWriting,
  type Redis,
} from '../../../shared/redis/connections.ts';
import { isRedisUnavailable, RedisUnavailableError } from '../../../shared/redis/failures.ts';
import { oneServer } from '../../support/one-server.ts';
import { type RedisProxy, type Strike, startRedisProxy, strikeOnce } from '../../support/redis-proxy.ts';
import { startTestRedis, type TestRedis, useRedis } from '../../support/redis-server.ts';
import { connectTo, masterName, startSentinel, until } from '../../topologies/servers.ts';

describe('a connection to a database that the server does not have', () => {
  const server = useRedis();
  const url = () => `${server().url}/99`;

  it('never uses another database: for serving, commands fail and it never becomes ready', async () => {
    const redis = connectForServing(url());
    try {
      let isReady = false;
      redis.on('ready', () => {
        isReady = true;
      });
      const reason = new Promise<string>((resolve) => redis.once('error', ({ message }) => resolve(message)));
      expect(await reason).to.match(/DB index is out of range/);
      await sleep(700); // The client retries in this time.
      const failure = await redis.set('medref:probe', 'here').catch((error: Error) => error);
      expect(failure).to.be.an('error');
      expect(isReady).to.equal(false);
    } finally {
      redis.disconnect();
    }
  });

  it('fails for writing', async () => {
    const failure = await connectForWriting(url()).catch((error: Error) => error);
    expect(failure).to.be.instanceOf(RedisUnavailableError);
    expect((failure as Error).message).to.match(/^Redis at 127\.0\.0\.1:\d+ cannot be used: .*\.$/);
  });

  it('leaves nothing in any database', async () => {
    const listener = connectForListening(url());
    await sleep(200);
    listener.disconnect();
    const redis = await connectForWriting(server().url);
    expect(await redis.keys('*')).to.deep.equal([]);
    redis.disconnect();
  });

  it('works once the server has the database', async () => {
    const redis = connectForServing(`${server().url}/15`);
    await new Promise((resolve) => redis.once('ready', resolve));
    await redis.set('medref:probe', 'here');
    expect(await redis.get('medref:probe')).to.equal('here');
    await redis.del('medref:probe');
    redis.disconnect();
  });
});

describe("a connection through a server's socket", () => {
  it('uses its user and its database', async () => {
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

  it('reports how long one command in eight took, and skips commands without a reply', async () => {
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

describe('a connection for serving, once Redis', () => {
  const server = useRedis();
  let redis: OneServer;
  let proxy: RedisProxy;
  beforeEach(async () => {
    const cut: Strike = { moment: 'after', act: (link) => link.cut() };
    proxy = await startRedisProxy(
      server().port,
      strikeOnce(({ name }) => name === 'INCR', cut),
    );
    redis = oneServer(connectForServing(proxy.url));
    await ready();
  });
  afterEach(async () => {
    redis.disconnect();
    await proxy.close();
  });
  const ready = () => new Promise((resolve) => redis.once('ready', resolve));

  it('is silent, fails pending commands and is reopened', async () => {
    server().pause();
    try {
      expect(await redis.get('medref:x').catch((error: Error) => error)).to.satisfy(isRedisUnavailable);
    } finally {
      server().resume();
    }
    await ready();
    expect(await redis.get('medref:x')).to.equal(null);
  });

  it('has closed it, fails pending commands and never repeats them', async () => {
    const failure = await redis.incr('medref:x').catch((error: Error) => error);
    expect(failure).to.satisfy(isRedisUnavailable);
    await ready();
    expect(await redis.get('medref:x')).to.equal('1');
    expect(proxy.commands.filter((name) => name === 'INCR')).to.have.length(1);
  });

  it('has been unavailable for long, is tried each half second', async () => {
    Object.assign(redis, { retryAttempts: 1_000 }); // This many attempts take some minutes.
    redis.stream.destroy();
    expect(await once(redis, 'reconnecting')).to.deep.equal([500]);
    await ready();
  });
});

describe('a connection that may wait for Redis', () => {
  const server = useRedis();

  it('for writing, repeats pending commands after every reconnection', async () => {
    const redis = await connectForWriting(server().url);
    try {
      await server().kill();
      const written = redis.set('medref:probe', 'here').catch(({ message }: Error) => message);
      await sleep(1_200); // By now, the client has tried several times in vain.
      await server().restart();
      expect(await written).to.equal('OK');
    } finally {
      redis.disconnect();
    }
  });

  it('for listening, subscribes as soon as Redis is available', async () => {
    await server().kill();
    const listener = connectForListening(server().url);
    try {
      const subscribed = listener.subscribe('medref:probe').catch(({ message }: Error) => message);
      await sleep(1_200);
      await server().restart();
      expect(await subscribed).to.equal(1);
    } finally {
      listener.disconnect();
    }
  });
});

describe('a connection to the primary of a Sentinel', () => {
  const servers: TestRedis[] = [];
  const looks: Redis[] = [];
  let listener: Redis;
  let folder: string;
  let stopSentinel: () => Promise<void>;
  let proxy: RedisProxy;
  let redis: Redis;
  /** Replies of the Sentinel are held as long as this is pending. */
  let held: Promise<void> | undefined;
  /** The number of commands that the Sentinel had received before. */
  let asked = 0;
  before(async () => {
    folder = await mkdtemp(join(tmpdir(), 'medref-'));
    const settings = { 'repl-diskless-sync-delay': '0' };
    servers.push(...(await Promise.all([startTestRedis({ settings }), startTestRedis({ settings })])));
    const [{ port: masterPort }, { port: replicaPort }] = servers as [TestRedis, TestRedis];
    looks.push(...[masterPort, replicaPort].map((it) => connectTo(it)));
    await looks[1]?.call('REPLICAOF', '127.0.0.1', masterPort);
    // A Sentinel asks a primary for its replicas at first, and not again for 10 s.
    await until(
      async () => String(await looks[0]?.info('replication')).includes('state=online'),
      'it has one',
    );
    const { child, port } = await startSentinel(join(folder, 'sentinel.conf'), { masterPort, quorum: 1 });
    stopSentinel = child.stop;
    looks.push(connectTo(port));
    listener = connectTo(port);
    proxy = await startRedisProxy(port, ({ name }) =>
      held && name === 'SENTINEL' ? { moment: 'after', act: () => held } : undefined,
    );
    await until(async () => (await sentinelSays('REPLICAS')).includes(String(replicaPort)), 'both are known');
  });
  beforeEach(async () => {
    asked = proxy.commands.length;
    redis = await connectForWriting(`${proxy.url.replace('redis:', 'redis+sentinel:')}/${masterName}`);
    await until(async () => proxy.commands.includes('SUBSCRIBE', asked), 'failovers are listened to');
  });
  afterEach(() => redis.disconnect());
  after(async () => {
    for (const it of [...looks, listener]) it.disconnect();
    await proxy.close();
    await Promise.all([stopSentinel(), ...servers.map((it) => it.stop())]);
    await rm(folder, { recursive: true });
  });

  const sentinelSays = async (what: string) => String(await looks[2]?.call('SENTINEL', what, masterName));

  /** Cuts the connection, so the client asks the Sentinel. @returns a function that releases the held reply */
  async function cut(): Promise<() => void> {
    let goOn: (() => void) | undefined;
    held = new Promise((resolve) => {
      goOn = resolve;
    });
    asked = proxy.commands.length;
    await looks[0]?.call('CLIENT', 'KILL', 'TYPE', 'normal');
    await until(async () => proxy.commands.includes('SENTINEL', asked), 'the Sentinel is asked');
    return () => {
      held = undefined;
      goOn?.();
    };
  }

  it('ends when closed, even during a query', async () => {
    const goOn = await cut();
    const written = redis.set('medref:probe', 'not').catch(({ message }: Error) => message);
    redis.disconnect();
    goOn();
    expect(await written).to.equal('Connection is closed.');
    await sleep(100);
    expect(redis.status).to.equal('end');
  });

  it('finds the next primary when a failover happens during a query', async () => {
    const goOn = await cut();
    const written = redis.set('medref:probe', 'here').catch(({ message }: Error) => message);
    await listener.subscribe('+switch-master');
    const reported = once(listener, 'message');
    await sentinelSays('FAILOVER');
    await reported;
    await sleep(50); // By now, the client has the message too.
    goOn();
    expect(await written).to.equal('OK');
    expect(await looks[1]?.get('medref:probe')).to.equal('here');
  });
});
