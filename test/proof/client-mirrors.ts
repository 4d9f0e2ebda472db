// Mirrors of the client library that follow a service through faults of its connections and of the service itself. Each step must
// be exactly its version, and the copy must reach the live version.

import fc from 'fast-check';
import {
  createClient,
  digestOf,
  type MedrefError,
  type MirrorStep,
  type Product,
} from '../../client/client.ts';
import { rollBack } from '../../importer/rollback.ts';
import { products as productCollection } from '../../shared/collections/products.ts';
import { connectForWriting, type Redis } from '../../shared/redis/connections.ts';
import { readKeptVersions, readLiveVersion } from '../../shared/store/versions.ts';
import { startApi, type TestApi } from '../support/api.ts';
import { quickTiming } from '../support/client-timing.ts';
import { importRecords } from '../support/importing.ts';
import { productKeys } from '../support/keys.ts';
import { type Fault, startFaultyProxy } from '../support/proxies.ts';
import { product } from '../support/records.ts';
import { startTestRedis } from '../support/redis-server.ts';

/** Events of the service while a mirror follows it. */
const events = ['change', 'same list', 'rollback', 'restart', 'loss of everything'] as const;

/** One run: its events in order, and its faults. */
export interface MirrorPlan {
  readonly events: readonly (typeof events)[number][];
  /** Faults of the first connections; later connections have none. */
  readonly faults: readonly Fault[];
  /** For each step: whether the mirror ends after it, and a new mirror continues from its version. */
  readonly ends: readonly boolean[];
  readonly isIdentity: boolean;
}

const fault: fc.Arbitrary<Fault> = fc.oneof(
  fc.record({
    kind: fc.constant('cut' as const),
    after: fc.oneof(fc.nat(1_500), fc.nat(15_000)),
    isReset: fc.boolean(),
  }),
  fc.record({
    kind: fc.constant('answer' as const),
    status: fc.constantFrom(429, 502, 503),
    retryAfter: fc.constantFrom(null, '0', '1'),
  }),
);

export const mirrorPlans: fc.Arbitrary<MirrorPlan> = fc.record({
  events: fc.array(fc.constantFrom('change', 'change', ...events), { minLength: 1, maxLength: 4 }),
  faults: fc.array(fault, { maxLength: 12 }),
  ends: fc.array(fc.boolean(), { maxLength: 6 }),
  isIdentity: fc.boolean(),
});

/** A service that mirrors follow, run after run. */
export class FollowedService {
  readonly #redis: Redis;
  readonly #redisUrl: string;
  readonly #stopRedis: () => Promise<void>;
  #api: TestApi;
  #records: readonly Product[] = [];
  #nextId = 1;
  /** The set digests of the published lists, by version. */
  readonly #truth = new Map<number, string>();
  readonly counts = new Map<string, number>();

  private constructor(redis: Redis, api: TestApi, server: { url: string; stop: () => Promise<void> }) {
    this.#redis = redis;
    this.#api = api;
    this.#redisUrl = server.url;
    this.#stopRedis = server.stop;
  }

  /** Starts a service; the caller calls `stop`. */
  static async start(): Promise<FollowedService> {
    const server = await startTestRedis();
    const redis = await connectForWriting(server.url);
    const service = new FollowedService(redis, await startApi({ redisUrl: server.url }), server);
    await service.#publishChange();
    return service;
  }

  async stop(): Promise<void> {
    await this.#api.stop();
    this.#redis.disconnect();
    await this.#stopRedis();
  }

  /** Follows the service through a plan. @throws Error if a step is not the version that it names */
  async run(plan: MirrorPlan): Promise<void> {
    const faults = [...plan.faults];
    const proxy = await startFaultyProxy(
      () => this.#api.port,
      () => faults.shift() ?? { kind: 'none' },
    );
    const ending = new AbortController();
    try {
      const copy = new Copy();
      const following = this.#follow(proxy.origin, { plan, copy, signal: ending.signal });
      // A mirror that gives up is reported at once, not at the end of the run.
      const failing = following.then(() => Promise.reject(new Error('The mirror ended.')));
      failing.catch(() => undefined);
      for (const event of plan.events) await Promise.race([this.#undergo(event), failing]);
      await Promise.race([this.#caughtUp(copy), failing]);
      ending.abort();
      await following;
      for (const [version, set] of copy.steps) this.#require(this.#truth.get(version) === set, `${version}`);
    } finally {
      ending.abort();
      await proxy.close();
    }
  }

  async #follow(
    baseUrl: string,
    { plan, copy, signal }: { plan: MirrorPlan; copy: Copy; signal: AbortSignal },
  ): Promise<void> {
    const identity: typeof fetch = (url, init) =>
      fetch(url, { ...init, headers: { ...(init?.headers as object), 'accept-encoding': 'identity' } });
    const { products } = createClient(
      { baseUrl, key: this.#api.key, ...(plan.isIdentity && { fetch: identity }) },
      // Other tests cover wrong settings; in this test a retry is always right.
      { ...quickTiming, tries: Number.POSITIVE_INFINITY },
    );
    const ends = [...plan.ends];
    const onError = ({ name }: MedrefError) => this.#count(`trouble: ${name}`);
    while (!signal.aborted) {
      for await (const step of products.mirror({ since: copy.version, every: 4, signal, onError })) {
        this.#count(`step: ${step.kind}`);
        copy.apply(step);
        const { set } = digestOf(copy.records.values());
        this.#require(set === step.digest.set, `${step.version}, which came as ${step.kind}`);
        copy.steps.push([step.version, set]);
        if (ends.shift()) break;
      }
    }
  }

  async #caughtUp(copy: Copy): Promise<void> {
    const live = (await readLiveVersion(this.#redis, productKeys))?.version;
    for (const deadline = Date.now() + 20_000; copy.version !== live; ) {
      if (Date.now() > deadline) throw new Error(`The mirror is at ${copy.version}, and ${live} is live.`);
      await new Promise((resolve) => setTimeout(resolve, 2));
    }
  }

  async #undergo(event: (typeof events)[number]): Promise<void> {
    this.#count(`event: ${event}`);
    if (event === 'change') return this.#publishChange();
    if (event === 'same list') return this.#publish();
    if (event === 'rollback') return this.#rollBack();
    if (event === 'restart') {
      await this.#api.stop();
      this.#api = await startApi({ redisUrl: this.#redisUrl });
      return;
    }
    const keys = await this.#redis.hgetall('medref:keys');
    const next = await this.#redis.get(productKeys.next);
    // The API key stays. No number is assigned twice: other tests cover the wait of imports for that.
    await this.#redis
      .multi()
      .flushall()
      .hset('medref:keys', keys)
      .set(productKeys.next, next ?? 0)
      .exec();
    await this.#publishChange();
  }

  /** Publishes a slightly changed list: one record is gone, some differ, one is new. */
  async #publishChange(): Promise<void> {
    const [, ...left] = this.#records;
    const changed = left.map((it, n) => (n % 7 === 0 ? { ...it, published: !it.published } : it));
    const come = Array.from({ length: left.length === 0 ? 40 : 1 }, () => product(this.#nextId++));
    this.#records = [...changed, ...come];
    await this.#publish();
  }

  async #publish(): Promise<void> {
    const { outcome, reason, version } = await importRecords(this.#records, productCollection, {
      ...{ redisUrl: this.#redisUrl, force: true },
    });
    if (outcome === 'published') this.#truth.set(version as number, digestOf(this.#records).set);
    else if (outcome !== 'unchanged') throw new Error(`An import was ${outcome}: ${reason}`);
  }

  async #rollBack(): Promise<void> {
    const kept = await readKeptVersions(this.#redis, productKeys);
    const to = kept.at(-1)?.version ?? null;
    const result = await rollBack(productCollection, {
      ...{ redis: this.#redis, keyPrefix: 'medref', to, maxNumberWaitMs: 0 },
    }).catch(() => null); // There may be no version to roll back to.
    if (result?.outcome !== 'rolled-back') return;
    this.#truth.set(result.report.version as number, this.#truth.get(to as number) as string);
  }

  #count(what: string): void {
    this.counts.set(what, (this.counts.get(what) ?? 0) + 1);
  }

  #require(holds: boolean, version: string): void {
    if (!holds) throw new Error(`The copy is not version ${version}.`);
  }
}

/** The copy that a consumer keeps. */
class Copy {
  readonly records = new Map<number, Product>();
  version: number | undefined;
  readonly steps: [version: number, set: string][] = [];

  apply({ version, records, changes }: MirrorStep<Product>): void {
    if (records) this.records.clear();
    for (const record of records ?? []) this.records.set(record.product.id, record);
    for (const { id, change, record } of changes ?? []) {
      if (change === 'removed' ? !this.records.delete(id) : this.records.has(id) !== (change === 'changed'))
        throw new Error(`${id} is told to be ${change}, and the copy does not say so.`);
      if (record) this.records.set(id, record);
    }
    this.version = version;
  }
}
