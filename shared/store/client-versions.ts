// Which version each client has, per API key and collection: the API records it, operators read it.

import type { ServedCollection } from '../collections/define.ts';
import type { Redis } from '../redis/connections.ts';
import { damageIn, isWrongType } from '../redis/failures.ts';
import { type ListedApiKey, listApiKeys } from './api-keys.ts';
import { apiKeyKeys, type CollectionKeys, servedKeys } from './keys.ts';
import { readKeptVersions } from './versions.ts';

/** A version of a collection that a client has. */
export interface ClientVersion {
  /** The version that the service last sent as a whole; `null`: none. */
  readonly served: number | null;
  /** ISO 8601. */
  readonly servedAt: string | null;
  /** The version whose digest the client reported last; `null`: none. */
  readonly verified: number | null;
  /** ISO 8601. */
  readonly verifiedAt: string | null;
}

/** A version that a client has, compared with the live one. */
export interface ComparedClientVersion extends ClientVersion {
  /** The later one of both. */
  readonly version: number;
  /** Whether the client has proved that it has this version. */
  readonly isVerified: boolean;
  /** How many versions were published since, as far as they are known: at most 101. */
  readonly behind: number;
}

const none: ClientVersion = { served: null, servedAt: null, verified: null, verifiedAt: null };

/** The field of a key and a collection, in the hash of the last use of keys. */
function clientVersionField(id: string, collection: string): string {
  return `${id}:${collection}`;
}

/** Stores what a client has, unless something later is stored: another process may have written it. */
export async function writeClientVersions(
  redis: Redis,
  keyPrefix: string,
  { id, versions }: { readonly id: string; readonly versions: ReadonlyMap<string, Partial<ClientVersion>> },
): Promise<void> {
  const { lastUse } = apiKeyKeys(keyPrefix);
  const fields = [...versions.keys()].map((collection) => clientVersionField(id, collection));
  const stored = await redis.hmget(lastUse, ...fields);
  const texts = [...versions.values()].flatMap((found, n) => [
    fields[n] as string,
    JSON.stringify(later(parseClientVersion(stored[n] ?? null), { ...none, ...found })),
  ]);
  await redis.hset(lastUse, ...texts);
}

/** Returns the later report of each kind. */
function later(one: ClientVersion, other: ClientVersion): ClientVersion {
  const served = (one.servedAt ?? '') > (other.servedAt ?? '') ? one : other;
  const verified = (one.verifiedAt ?? '') > (other.verifiedAt ?? '') ? one : other;
  return {
    ...{ served: served.served, servedAt: served.servedAt },
    ...{ verified: verified.verified, verifiedAt: verified.verifiedAt },
  };
}

/** Parses the stored text of a version; damaged text counts as none. */
function parseClientVersion(text: string | null): ClientVersion {
  try {
    return { ...none, ...(JSON.parse(text ?? '{}') as Partial<ClientVersion>) };
  } catch {
    return none;
  }
}

/** A key in the list, with the versions that its client has. */
export interface ListedClient extends ListedApiKey {
  /** By collection; a collection that the client never read as a whole is absent. */
  readonly versions: Readonly<Record<string, ComparedClientVersion>>;
}

/** Returns all keys, oldest first, with the versions that their clients have. @throws DamagedKeyError */
export async function listClients(
  redis: Redis,
  keyPrefix: string,
  served: readonly ServedCollection[],
): Promise<ListedClient[]> {
  const { lastUse } = apiKeyKeys(keyPrefix);
  const [keys, stored, published] = await Promise.all([
    listApiKeys(redis, keyPrefix),
    redis.hgetall(lastUse),
    readPublished(redis, keyPrefix, served),
  ]);
  return keys.map(({ id, client, createdAt, expiresAt, rate, lastUsedAt, ...others }) => {
    const found = [...published].flatMap(([collection, numbers]) => {
      const text = stored[clientVersionField(id, collection)] ?? null;
      const its = compared(parseClientVersion(text), numbers);
      return its ? [[collection, its] as const] : [];
    });
    const versions = Object.fromEntries(found);
    return { id, client, createdAt, expiresAt, rate, lastUsedAt, versions, ...others };
  });
}

/** Returns the keys of clients that may use them and have no newer ones; none if a key is damaged, which reads of keys report. */
export async function listActiveClients(
  redis: Redis,
  keyPrefix: string,
  served: readonly ServedCollection[],
): Promise<ListedClient[]> {
  try {
    return (await listClients(redis, keyPrefix, served)).filter(isActive);
  } catch (error) {
    if (await damageIn(redis, error)) return [];
    throw error;
  }
}

/** Returns whether a client can still use its key, and has no newer one. */
export function isActive({ expiresAt, rotatedTo }: ListedApiKey): boolean {
  return rotatedTo === undefined && (expiresAt === null || Date.parse(expiresAt) > Date.now());
}

/** Reads the last published versions of each collection, at most 101. */
async function readPublished(
  redis: Redis,
  keyPrefix: string,
  served: readonly ServedCollection[],
): Promise<Map<string, readonly number[]>> {
  const read = async (it: ServedCollection) => {
    const { keys } = servedKeys(keyPrefix, it);
    const numbers = await redis.zrange(keys.changeSets, 0, '-1').catch(noneOfWrongType);
    return [it.collection.name, numbers.map(Number)] as const;
  };
  return new Map(await Promise.all(served.map(read)));
}

/** Compares the version of a client with the published ones; `null` if the client has none. */
function compared(its: ClientVersion, published: readonly number[]): ComparedClientVersion | null {
  const { served, servedAt, verified, verifiedAt } = its;
  const version = (verifiedAt ?? '') >= (servedAt ?? '') ? verified : served;
  if (version === null) return null;
  const behind = published.filter((number) => number > version).length;
  return { version, isVerified: version === verified, behind, ...its };
}

/** Returns the kept versions of a collection with a content that was rolled back and not published again since. */
export async function readRolledBack(redis: Redis, keys: CollectionKeys): Promise<number[]> {
  const checksums = await redis.smembers(keys.rolledBack);
  if (checksums.length === 0) return [];
  const kept = await readKeptVersions(redis, keys);
  return kept.filter(({ checksum }) => checksums.includes(checksum)).map(({ version }) => version);
}

function noneOfWrongType(error: unknown): string[] {
  if (isWrongType(error)) return [];
  throw error;
}
