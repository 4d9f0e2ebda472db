// API keys: made and revoked by operators, looked up by the API. Only their SHA-256 is stored.

import { hash, randomBytes } from 'node:crypto';
import { apiKeyKeys } from './keys.ts';
import type { Redis } from './redis.ts';

/** What is known of a key; never the key itself. */
export interface ApiKey {
  readonly id: string;
  /** Whom it was issued to. */
  readonly client: string;
  /** ISO 8601. */
  readonly createdAt: string;
  /** ISO 8601; `null`: it does not expire. */
  readonly expiresAt: string | null;
  /** Requests a second it is made for, such as `10/s`; `null`: no limit. */
  readonly rate: string | null;
}

/** A key as an operator sees it. */
export interface ListedApiKey extends ApiKey {
  readonly lastUsedAt: string | null;
}

/** Last use is written at most this often for each key and process. */
const lastUseEveryMs = 60_000;

/** Makes a key. @returns what is stored, and the key itself, which cannot be had again */
export async function createApiKey(
  redis: Redis,
  keyPrefix: string,
  { client, expiresAt, rate }: { client: string; expiresAt: Date | null; rate: string | null },
): Promise<ApiKey & { key: string }> {
  const key = `medref_${randomBytes(32).toString('base64url')}`;
  const known: ApiKey = {
    id: randomBytes(6).toString('hex'),
    client,
    createdAt: new Date().toISOString(),
    expiresAt: expiresAt?.toISOString() ?? null,
    rate,
  };
  await redis.hset(apiKeyKeys(keyPrefix).keys, digest(key), JSON.stringify(known));
  return { ...known, key };
}

/** All keys, oldest first. */
export async function listApiKeys(redis: Redis, keyPrefix: string): Promise<ListedApiKey[]> {
  const { keys, lastUse } = apiKeyKeys(keyPrefix);
  const [stored, used] = await Promise.all([redis.hvals(keys), redis.hgetall(lastUse)]);
  return stored
    .map((text) => JSON.parse(text) as ApiKey)
    .map((key) => ({ ...key, lastUsedAt: used[key.id] ?? null }))
    .sort((a, b) => (a.createdAt < b.createdAt ? -1 : 1));
}

/** Revokes the key with this id at once. @returns what was known of it, or `null` when there is none */
export async function revokeApiKey(redis: Redis, keyPrefix: string, id: string): Promise<ApiKey | null> {
  const { keys, lastUse } = apiKeyKeys(keyPrefix);
  for (const [hash, text] of Object.entries(await redis.hgetall(keys))) {
    const key = JSON.parse(text) as ApiKey;
    if (key.id !== id) continue;
    await redis.multi().hdel(keys, hash).hdel(lastUse, id).exec();
    return key;
  }
  return null;
}

/** How long a key that was found is known without asking, in ms: it stops working within a second of its revocation. */
const knownForMs = 500;

/** Looks keys up for the API, and notes when each was last used. */
export class ApiKeyring {
  readonly #redis: Redis;
  readonly #stored: ReturnType<typeof apiKeyKeys>;
  readonly #noted = new Map<string, number>();
  /** Keys that were found, by their digests; one that is asked for at the moment is a promise for all who ask. */
  readonly #found = new Map<string, { readonly key: Promise<ApiKey | null>; readonly until: number }>();

  constructor({ redis, keyPrefix }: { redis: Redis; keyPrefix: string }) {
    this.#redis = redis;
    this.#stored = apiKeyKeys(keyPrefix);
  }

  /** The key that a client sent, if it is known, not revoked and not expired; throws while Redis is away. */
  async find(sent: string): Promise<ApiKey | null> {
    const now = Date.now();
    const key = await this.#lookUp(digest(sent), now);
    if (key === null || (key.expiresAt !== null && Date.parse(key.expiresAt) <= now)) return null;
    this.#noteUse(key.id, now);
    return key;
  }

  /** What is stored under a digest; asked for anew when it was asked for half a second ago. */
  #lookUp(digested: string, now: number): Promise<ApiKey | null> {
    const found = this.#found.get(digested);
    if (found && found.until > now) return found.key;
    const key = this.#redis
      .hget(this.#stored.keys, digested)
      .then((text) => (text === null ? null : (JSON.parse(text) as ApiKey)));
    this.#found.set(digested, { key, until: now + knownForMs });
    // Only keys that there are stay known, so that what is sent at random is not kept.
    const forget = () => this.#found.get(digested)?.key === key && this.#found.delete(digested);
    key.then((it) => it ?? forget(), forget);
    return key;
  }

  #noteUse(id: string, now: number): void {
    if (now - (this.#noted.get(id) ?? 0) < lastUseEveryMs) return;
    this.#noted.set(id, now);
    this.#redis
      .hset(this.#stored.lastUse, id, new Date(now).toISOString())
      .catch(() => this.#noted.delete(id));
  }
}

function digest(key: string): string {
  return hash('sha256', key);
}
