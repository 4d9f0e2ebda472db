// API keys as they are stored, by their SHA-256 alone: made, listed and revoked by operators.

import { hash, randomBytes } from 'node:crypto';
import { apiKeyKeys } from './keys.ts';
import type { Redis } from './redis/connections.ts';
import { parseStored } from './redis/damage.ts';

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
  await redis.hset(apiKeyKeys(keyPrefix).keys, digestOf(key), JSON.stringify(known));
  return { ...known, key };
}

/** All keys, oldest first. @throws DamagedKeyError */
export async function listApiKeys(redis: Redis, keyPrefix: string): Promise<ListedApiKey[]> {
  const { keys, lastUse } = apiKeyKeys(keyPrefix);
  const [stored, used] = await Promise.all([redis.hvals(keys), redis.hgetall(lastUse)]);
  return stored
    .map((text) => parseStored<ApiKey>(keys, text))
    .map((key) => ({ ...key, lastUsedAt: used[key.id] ?? null }))
    .sort((a, b) => (a.createdAt < b.createdAt ? -1 : 1));
}

/** Revokes the key with this id at once. @returns what was known of it, or `null` when there is none */
export async function revokeApiKey(redis: Redis, keyPrefix: string, id: string): Promise<ApiKey | null> {
  const { keys, lastUse } = apiKeyKeys(keyPrefix);
  for (const [hash, text] of Object.entries(await redis.hgetall(keys))) {
    const key = JSON.parse(text) as ApiKey;
    if (key.id !== id) continue;
    // Two slots of a Cluster, so two steps: a revocation that stops between them can be repeated.
    await redis.hdel(lastUse, id);
    await redis.hdel(keys, hash);
    return key;
  }
  return null;
}

/** What a key is stored under: keys are random, so a quick hash will do. */
export function digestOf(key: string): string {
  return hash('sha256', key);
}
