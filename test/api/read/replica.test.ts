import { setTimeout as sleep } from 'node:timers/promises';
import { expect } from 'chai';
import { Replica } from '../../../api/read/replica.ts';
import { products as productCollection } from '../../../shared/collections/products.ts';
import { connectForServing, connectForWriting, type Redis } from '../../../shared/redis/connections.ts';
import { collectionKeys } from '../../../shared/store/keys.ts';
import { type LiveVersion, readLiveVersion } from '../../../shared/store/versions.ts';
import { startApi, type TestApi } from '../../support/api.ts';
import { aheadOfClock, importRecords } from '../../support/importing.ts';
import { oneServer } from '../../support/one-server.ts';
import { products } from '../../support/records.ts';
import { useRedis } from '../../support/redis-server.ts';

describe('an API process that reads from a replica', () => {
  const settings = { 'repl-diskless-sync-delay': '0' };
  const master = useRedis({ settings });
  const replica = useRedis({ settings });
  const keys = collectionKeys('medref', productCollection);
  let redis: ReturnType<typeof oneServer>;
  let mirror: ReturnType<typeof oneServer>;
  let api: TestApi;
  let size = 210;
  before(async () => {
    redis = oneServer(await connectForWriting(master().url));
    mirror = oneServer(await connectForWriting(replica().url));
    await redis.set(keys.next, aheadOfClock);
    await publish();
    await follow();
    const connectReplica = (onLost: () => void) => connectForServing(replica().url).on('close', onLost);
    api = await startApi({ redisUrl: master().url, connectReplica, cacheBytes: 1 });
    await untilReadFrom('replica');
  });
  after(async () => {
    await api.stop();
    redis.disconnect();
    mirror.disconnect();
  });

  /** Makes the replica copy all writes of the primary. Without this call, its data does not change. */
  async function follow(): Promise<void> {
    await mirror.replicaof('127.0.0.1', master().port);
    while (!(await redis.info('replication')).includes('state=online')) await sleep(20);
  }
  const stayBehind = () => mirror.replicaof('NO', 'ONE');

  async function publish(): Promise<number> {
    size += 1;
    const changes = { redisUrl: master().url, force: true, waitReplicas: 0 };
    const { version, reason } = await importRecords(products(size), productCollection, changes);
    expect(reason).to.equal(null);
    return version as number;
  }

  /** Returns how often the primary was asked for records. */
  const hmgets = async () =>
    Number(/^cmdstat_hmget:calls=(\d+)/m.exec(await redis.info('commandstats'))?.[1] ?? 0);

  /** Returns which of the two servers the API reads records from. It counts the reads that reach the primary. */
  async function readFrom(): Promise<string> {
    const before = await hmgets();
    await api.get('/products?page=1');
    return (await hmgets()) > before ? 'master' : 'replica';
  }
  async function untilReadFrom(server: string): Promise<void> {
    const deadline = Date.now() + 2_000;
    while ((await readFrom()) !== server) {
      expect(Date.now(), server).to.be.below(deadline);
      await sleep(40);
    }
  }
  const answered = async (path = '/products') => {
    const { status, headers } = await api.get(path);
    return status === 200 ? Number(headers.get('medref-version')) : status;
  };
  async function untilAnswered(version: number): Promise<void> {
    const deadline = Date.now() + 1_000;
    while ((await answered()) !== version) {
      expect(Date.now(), 'within a second').to.be.below(deadline);
      await sleep(20);
    }
  }

  it('serves a publication within a second from the replica', async () => {
    await untilAnswered(await publish());
    await untilReadFrom('replica');
    expect((await api.get('/products/7')).status).to.equal(200);
  });

  it('skips a lagging replica, serves a publication within a second, and returns to the replica', async () => {
    await stayBehind();
    const version = await publish();
    await untilAnswered(version);
    expect(await readFrom()).to.equal('master');
    for (let n = 0; n < 20; n++) expect(await answered()).to.equal(version);
    await follow();
    await untilReadFrom('replica');
    expect(await answered()).to.equal(version);
  });

  it('finds a version that another process has served but the replica does not have yet', async () => {
    await stayBehind();
    const version = await publish();
    const asked = performance.now();
    expect(await answered(`/products?version=${version}`)).to.equal(version);
    expect(performance.now() - asked, 'without waiting for the replica, in ms').to.be.below(250);
    await follow();
    await untilReadFrom('replica');
  });

  it('keeps the previous version briefly while the replica receives the next one', async () => {
    await stayBehind();
    const before = await answered();
    const version = await publish();
    await sleep(60);
    expect([await answered(), await readFrom()]).to.deep.equal([before, 'replica']);
    await untilAnswered(version);
    await follow();
    await untilReadFrom('replica');
  });

  it('reads from the primary while the replica is unavailable, and from the replica once it is up to date', async () => {
    await replica().kill();
    const version = await publish();
    const deadline = Date.now() + 2_000;
    while ((await answered()) !== version) {
      expect(Date.now()).to.be.below(deadline);
      await sleep(20);
    }
    expect(await readFrom()).to.equal('master');
    await replica().restart(); // After the restart it lacks the published version, and is the replica of no server.
    await sleep(700);
    expect([await answered(), await readFrom()]).to.deep.equal([version, 'master']);
    await follow();
    await untilReadFrom('replica');
    expect(await answered()).to.equal(version);
  });

  it("serves the replica's data while the primary is unavailable, as long as keys are known", async () => {
    await sleep(600); // After this, the API asks for the key again, and then remembers it for half a second.
    const version = await answered();
    master().pause();
    expect(await answered()).to.equal(version);
    master().resume();
    await sleep(200);
    expect(await answered()).to.equal(version);
  });
});

describe('one replica', () => {
  const servers = [useRedis(), useRedis()] as const;
  const keys = collectionKeys('medref', productCollection);
  const turns: string[] = [];
  let master: Redis;
  let replica: Redis;
  let subject: Replica;
  let live: LiveVersion;
  beforeEach(async () => {
    [master, replica] = [
      await connectForWriting(servers[0]().url),
      await connectForWriting(servers[1]().url),
    ];
    await importRecords(products(3), productCollection, { redisUrl: servers[0]().url, force: true });
    await replica.set(keys.live, (await master.get(keys.live)) as string);
    live = (await readLiveVersion(master, keys)) as LiveVersion;
    turns.length = 0;
    subject = new Replica({ master, replica, onTurn: (from) => turns.push(from) });
  });
  afterEach(() => {
    for (const redis of [master, replica]) redis.disconnect();
  });

  it('is not read from if it changed during the query', async () => {
    const asked = subject.readLive(keys, undefined, false);
    subject.forget();
    expect(await asked).to.deep.equal(live);
    expect(turns).to.deep.equal([]);
    await subject.readLive(keys, undefined, false);
    expect(turns).to.deep.equal(['replica']);
  });

  it('is not read from while it cannot be queried', async () => {
    await subject.readLive(keys, undefined, false);
    await master.set('where', 'at the master');
    expect(await subject.redis.get('where')).to.equal(null);
    replica.disconnect();
    await new Promise((resolve) => replica.once('end', resolve));
    expect(await subject.redis.get('where')).to.equal('at the master');
  });

  it('serves the live version without a primary, but nothing older than already served', async () => {
    await subject.readLive(keys, undefined, false);
    master.disconnect();
    for (const known of [undefined, live])
      expect(await subject.readLive(keys, known, false)).to.deep.equal(live);
    const newer = { ...live, version: live.version + 1 };
    const reason = await subject.readLive(keys, newer, false).catch(({ message }: Error) => message);
    expect(reason).to.equal('Connection is closed.');
  });
});
