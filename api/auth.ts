// API keys (RFC 6750): all of them are in memory, and each request is checked against them without asking Redis.

import { setImmediate as nextTurn } from 'node:timers/promises';
import Boom from '@hapi/boom';
import type { Request, Server } from '@hapi/hapi';
import { type Redis, sendToServerOf } from '../shared/redis/connections.ts';
import { damageIn, isRedisUnavailable, parseStored } from '../shared/redis/failures.ts';
import { parseInfo } from '../shared/redis/server-setup.ts';
import { type ApiKey, digestOf, generationField } from '../shared/store/api-keys.ts';
import { type ApiKeyKeys, apiKeyKeys } from '../shared/store/keys.ts';
import type { ClientRecord } from './client-versions.ts';
import { noteRoute } from './http.ts';
import type { RateLimiter } from './rate-limit.ts';
import { DamagedError } from './read/versions.ts';

/** How often Redis is asked whether the keys have changed, in ms: a revoked key stops working within a second. */
const pollMs = 500;

/** If Redis has not confirmed the keys for this long, in ms, they are not trusted any more. */
const trustedForMs = 5_000;

/** The last use of a key is written at most this often, in ms. */
const lastUseEveryMs = 60_000;

const bearer = /^bearer +([A-Za-z0-9._~+/-]+=*) *$/i;

/** The options of the key table. */
export interface ApiKeysOptions {
  readonly redis: Redis;
  readonly keyPrefix: string;
  /** Called with a sentence if stored keys are damaged or were evicted. */
  readonly onDamage: (message: string) => void;
}

interface Entry {
  /** `null` if the stored key is damaged. */
  readonly key: ApiKey | null;
  /** In ms of the clock. */
  readonly expiresAt: number;
  /** When its last use was written, in ms of the clock. */
  notedAt: number;
}

/** What routes and authentication need of the keys. */
export type KnownKeys = Pick<ApiKeys, 'find' | 'isConfirmed'>;

/** All API keys, for one process. Reloads them when their generation changes. */
export class ApiKeys {
  readonly #redis: Redis;
  readonly #onDamage: (message: string) => void;
  readonly #stored: ApiKeyKeys;
  /** By SHA-256; `undefined` if the keys are not known. */
  #byDigest: Map<string, Entry> | undefined;
  /** By their text, once they were used: to hash the key of each request would cost 2 % of it. */
  readonly #byText = new Map<string, Entry>();
  #ids: ReadonlySet<string> = new Set();
  #generation: string | undefined;
  /** When Redis was last asked and confirmed the keys, in ms of the process. */
  #confirmedAt = Number.NEGATIVE_INFINITY;
  #isConfirmed = false;
  /** Why the keys are not known. */
  #failure: Error = new DamagedError('The API keys have not been read yet.');
  #reported: string | undefined;
  #asked = 0;
  #appliedTurn = 0;
  #timer: NodeJS.Timeout | undefined;

  constructor({ redis, keyPrefix, onDamage }: ApiKeysOptions) {
    this.#redis = redis;
    this.#onDamage = onDamage;
    this.#stored = apiKeyKeys(keyPrefix);
  }

  /** Starts to follow the keys. @param listener borrowed @returns resolves after the first read, even if it failed */
  start(listener: Redis): Promise<void> {
    const { announcements } = this.#stored;
    listener.subscribe(announcements).catch(() => undefined);
    listener.on('message', (channel: string) => channel === announcements && this.refresh());
    this.#timer = setInterval(() => this.refresh(), pollMs).unref();
    return this.refresh();
  }

  stop(): void {
    clearInterval(this.#timer);
  }

  /** Returns the key that a client sent, or `null` if it is unknown or expired. Throws if the keys are not known. */
  find(sent: string): ApiKey | null {
    if (!this.#byDigest || performance.now() - this.#confirmedAt > trustedForMs) throw this.#failure;
    const entry = this.#byText.get(sent) ?? this.#resolve(sent, this.#byDigest);
    if (!entry) return null;
    if (!entry.key) throw unreadable();
    const now = Date.now();
    if (entry.expiresAt <= now) return null;
    if (now - entry.notedAt >= lastUseEveryMs) this.#noteUse(entry, entry.key.id, now);
    return entry.key;
  }

  /** Returns whether a key with this id exists. */
  hasId(id: string): boolean {
    return this.#ids.has(id);
  }

  /** Whether Redis confirmed the keys when it was last asked. */
  get isConfirmed(): boolean {
    return this.#isConfirmed;
  }

  /** Asks Redis whether the keys have changed, and loads them if they have. Never rejects. */
  async refresh(): Promise<void> {
    const askedAt = performance.now();
    const turn = ++this.#asked;
    try {
      const { keys } = this.#stored;
      const generation = await this.#redis.hget(keys, generationField);
      const isKnown = this.#byDigest && generation !== null && generation === this.#generation;
      const stored = isKnown ? null : await this.#redis.hgetall(keys);
      if (stored && Object.keys(stored).length === 0) await this.#refuseEviction();
      if (turn < this.#appliedTurn) return;
      this.#appliedTurn = turn;
      if (stored) this.#load(stored);
      this.#confirmedAt = askedAt;
      this.#isConfirmed = true;
    } catch (error) {
      if (turn < this.#appliedTurn) return;
      this.#appliedTurn = turn;
      await this.#fail(error as Error);
    }
  }

  #resolve(sent: string, byDigest: ReadonlyMap<string, Entry>): Entry | undefined {
    const entry = byDigest.get(digestOf(sent));
    if (entry) this.#byText.set(sent, entry);
    return entry;
  }

  #load({ [generationField]: generation, ...stored }: Record<string, string>): void {
    const before = this.#byDigest;
    const byDigest = new Map<string, Entry>();
    let damage: string | undefined;
    for (const [digest, text] of Object.entries(stored)) {
      let key: ApiKey | null = null;
      try {
        key = parseStored<ApiKey>(this.#stored.keys, text);
      } catch (error) {
        damage = (error as Error).message;
      }
      byDigest.set(digest, {
        key,
        expiresAt: key?.expiresAt ? Date.parse(key.expiresAt) : Number.POSITIVE_INFINITY,
        notedAt: before?.get(digest)?.notedAt ?? 0,
      });
    }
    this.#byDigest = byDigest;
    this.#ids = new Set([...byDigest.values()].flatMap(({ key }) => (key ? [key.id] : [])));
    this.#byText.clear();
    this.#generation = generation;
    this.#report(damage);
  }

  /** Keeps the keys for a while if Redis is unavailable; after any other error, requests get 503 until the keys can be read. */
  async #fail(error: Error): Promise<void> {
    this.#failure = error;
    this.#isConfirmed = false;
    if (isRedisUnavailable(error)) return;
    this.#byDigest = undefined;
    this.#byText.clear();
    const damage = await damageIn(this.#redis, error).catch(() => null);
    if (!damage) return;
    this.#failure = unreadable();
    this.#report(damage.message);
  }

  /** Checks whether Redis may have evicted the keys; without keys, clients would get 401. @throws DamagedError */
  async #refuseEviction(): Promise<void> {
    const { keys } = this.#stored;
    const reply = await sendToServerOf(this.#redis, keys, ['INFO']).catch(() => ''); // Without the right, it cannot be known.
    const { evictionPolicy, evictedKeys } = parseInfo(String(reply));
    if (evictedKeys === 0 && ['noeviction', 'unknown'].includes(evictionPolicy)) return;
    this.#report(
      `${keys} is missing, and Redis evicts keys (maxmemory-policy ${evictionPolicy}). Set maxmemory-policy to noeviction, and restore the API keys from a backup or create new ones.`,
    );
    throw unreadable();
  }

  #report(damage: string | undefined): void {
    if (damage !== undefined && damage !== this.#reported) this.#onDamage(damage);
    this.#reported = damage;
  }

  #noteUse(entry: Entry, id: string, now: number): void {
    entry.notedAt = now;
    this.#redis.hset(this.#stored.lastUse, id, new Date(now).toISOString()).catch(() => {
      entry.notedAt = 0;
    });
  }
}

function unreadable(): DamagedError {
  return new DamagedError('Keys cannot be looked up at the moment.');
}

/** The options of authentication. */
export interface AuthOptions {
  readonly apiKeys: KnownKeys;
  /** Without it, no key has a rate limit. */
  readonly rateLimiter?: RateLimiter | undefined;
  readonly clientVersions: ClientRecord;
}

/** Requires a key on every route that does not opt out, valid for the collection of its path and within its rate limit. */
export function requireKeys(server: Server, { apiKeys, rateLimiter, clientVersions }: AuthOptions): void {
  server.auth.scheme('bearer-key', () => ({
    async authenticate(request, h) {
      noteRoute(request);
      const key = keyOf(request, apiKeys);
      if (!key) throw unauthorized();
      const credentials = { app: { key } };
      const refusal = otherCollection(key, request.route.path);
      if (refusal) return h.unauthenticated(refusal, { credentials });
      const has = request.raw.req.headers['medref-have'];
      if (has !== undefined) clientVersions.reported(key.id, collectionOf(request.route.path), has);
      const limit = rateLimiter?.limitOf(key);
      // Node reads all requests that have arrived before medref writes the first response. That saves a fifth of the CPU time.
      const exceeded = limit ? await limit.charge(key.id, request.raw.res) : await nextTurn(null);
      return exceeded ? h.unauthenticated(exceeded, { credentials }) : h.authenticated({ credentials });
    },
  }));
  server.auth.strategy('bearer', 'bearer-key');
  server.auth.default('bearer');
}

/** Returns the key of a request, or `null` if it sends none that is valid. Throws if the keys are not known. */
export function keyOf({ raw }: Pick<Request, 'raw'>, apiKeys: KnownKeys): ApiKey | null {
  const [, sent] = bearer.exec(raw.req.headers.authorization ?? '') ?? [];
  return sent === undefined ? null : apiKeys.find(sent);
}

/** Every cause has the same message, so a client cannot learn which keys exist. */
export function unauthorized(): Boom.Boom {
  const error = Boom.unauthorized('A valid key is required. Send it as "Authorization: Bearer <key>".');
  error.output.headers['WWW-Authenticate'] = 'Bearer realm="medref"';
  return error;
}

/** The path of every route that needs a key begins with its collection. */
function collectionOf(path: string): string {
  return path.split('/')[1] ?? '';
}

/** Returns 403 for a key of other collections. */
function otherCollection({ collections }: ApiKey, path: string): Boom.Boom | null {
  if (!collections) return null;
  const collection = collectionOf(path);
  if (collections.includes(collection)) return null;
  return Boom.forbidden(`This key is valid for ${collections.join(' and ')}, not for ${collection}.`);
}
