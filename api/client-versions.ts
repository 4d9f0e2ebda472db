// Records which version each client has: what was sent to it as a whole, and the digest that it reports in Medref-Have.
// Nothing waits for it: what is known is written at most once a minute per key.

import type { Request } from '@hapi/hapi';
import type { ServedCollection } from '../shared/collections/define.ts';
import type { Redis } from '../shared/redis/connections.ts';
import type { ApiKey } from '../shared/store/api-keys.ts';
import { type ClientVersion, writeClientVersions } from '../shared/store/client-versions.ts';
import { servedKeys } from '../shared/store/keys.ts';
import { readKeptVersion, readLiveVersion, versionOf } from '../shared/store/versions.ts';

/** What is known of a key is written this long after it became known, in ms, so that some requests share a write. */
const soonMs = 500;

/** What is known of a key is written at most this often, in ms. */
const everyMs = 60_000;

/** A report of a client: a version, and its set digest in base64, with or without the colons of Medref-Digest. */
const report = /^(\d{1,16}) +:?([A-Za-z0-9+/]{43}=):?$/;

/** What is known of a key and not written yet. */
interface Unwritten {
  /** By collection. */
  readonly versions: Map<string, Partial<ClientVersion> & { readonly digest?: string }>;
  /** When the last write began, in ms of the process. */
  writtenAt: number;
  timer: NodeJS.Timeout | undefined;
}

/** The options of the record. */
export interface ClientVersionsOptions {
  readonly redis: Redis;
  readonly keyPrefix: string;
  readonly served: readonly ServedCollection[];
  /** Returns whether a key still exists. */
  readonly isKnown: (id: string) => boolean;
}

/** What routes and authentication need of the record. */
export type ClientRecord = Pick<ClientVersions, 'serving' | 'reported'>;

/** The record of one process. */
export class ClientVersions {
  readonly #options: ClientVersionsOptions;
  readonly #unwritten = new Map<string, Unwritten>();
  readonly #writing = new Set<Promise<void>>();

  constructor(options: ClientVersionsOptions) {
    this.#options = options;
  }

  /** Notes that a response has all that a version has, once it is sent completely. HEAD responses have nothing. */
  serving({ auth, raw }: Pick<Request, 'auth' | 'raw'>, collection: string, version: number): void {
    const { key } = (auth.credentials?.app ?? {}) as { readonly key?: ApiKey };
    if (!key || raw.req.method !== 'GET') return;
    raw.res.once('finish', () => {
      this.#note(key.id, collection, { served: version, servedAt: new Date().toISOString() });
    });
  }

  /** Notes the report in a Medref-Have field. A malformed one is ignored; the digest is compared when it is written. */
  reported(id: string, collection: string, field: string | string[]): void {
    const [, version, digest] = report.exec(String(field)) ?? [];
    if (digest === undefined) return;
    const verified = Number(version);
    this.#note(id, collection, { verified, verifiedAt: new Date().toISOString(), digest });
  }

  /** Writes what is known, and stops. */
  async stop(): Promise<void> {
    for (const [id, { timer }] of this.#unwritten) {
      clearTimeout(timer);
      this.#write(id);
    }
    await Promise.all(this.#writing);
    for (const { timer } of this.#unwritten.values()) clearTimeout(timer);
  }

  #note(id: string, collection: string, found: Partial<ClientVersion> & { digest?: string }): void {
    let its = this.#unwritten.get(id);
    if (!its) {
      its = { versions: new Map(), writtenAt: Number.NEGATIVE_INFINITY, timer: undefined };
      this.#unwritten.set(id, its);
    }
    its.versions.set(collection, { ...its.versions.get(collection), ...found });
    const waitMs = Math.max(soonMs, its.writtenAt + everyMs - performance.now());
    its.timer ??= setTimeout(() => this.#write(id), waitMs).unref();
  }

  #write(id: string): void {
    const its = this.#unwritten.get(id);
    if (!its) return;
    its.timer = undefined;
    its.writtenAt = performance.now();
    if (!this.#options.isKnown(id)) {
      this.#unwritten.delete(id);
      return;
    }
    const versions = new Map(its.versions);
    its.versions.clear();
    if (versions.size === 0) return;
    const writing = this.#store(id, versions)
      .catch(() => {
        // Redis may be unavailable: the next write has it, unless something later is known by then.
        for (const [collection, found] of versions)
          this.#note(id, collection, { ...found, ...its.versions.get(collection) });
      })
      .finally(() => this.#writing.delete(writing));
    this.#writing.add(writing);
  }

  async #store(id: string, versions: Unwritten['versions']): Promise<void> {
    const proven = new Map<string, Partial<ClientVersion>>();
    for (const [collection, { digest, verified = null, verifiedAt = null, ...found }] of versions) {
      const isProven = verified !== null && digest === (await this.#digestOf(collection, verified));
      const its = { ...found, ...(isProven && { verified, verifiedAt }) };
      if (Object.keys(its).length > 0) proven.set(collection, its);
    }
    const { redis, keyPrefix } = this.#options;
    if (proven.size > 0) await writeClientVersions(redis, keyPrefix, { id, versions: proven });
  }

  /** Returns the set digest of a kept version in base64; `undefined` if there is none with that number. */
  async #digestOf(collection: string, number: number): Promise<string | undefined> {
    const { redis, keyPrefix, served } = this.#options;
    const it = served.find((one) => one.collection.name === collection);
    if (!it) return undefined;
    const { keys } = servedKeys(keyPrefix, it);
    const live = await readLiveVersion(redis, keys);
    const stored = live?.version === number ? live : await readKeptVersion(redis, keys, number);
    const version = stored && versionOf(it, stored);
    return version?.setDigest === undefined
      ? undefined
      : Buffer.from(version.setDigest, 'hex').toString('base64');
  }
}
