// The keys that record which versions a collection has: whether they are intact, and how they are repaired.

import { parseCandidate } from '../shared/candidates.ts';
import { execute, type Redis } from '../shared/redis/connections.ts';
import { DamagedKeyError, isWrongType, parseStored } from '../shared/redis/failures.ts';
import type { CollectionKeys } from '../shared/store/keys.ts';
import { type Leaving, type Lock, retain, type Write, writeLocked } from '../shared/store/scripts.ts';
import { parseVersion } from '../shared/store/versions.ts';
import { graceMs } from './publish.ts';

/** The type of each key of a collection, except the lock, contents and change sets. */
const types = {
  next: 'string',
  live: 'string',
  versions: 'zset',
  versionDocuments: 'hash',
  staged: 'set',
  candidate: 'string',
  imports: 'stream',
  rejects: 'list',
  pause: 'string',
  rolledBack: 'set',
  damaged: 'hash',
  checked: 'string',
  validators: 'string',
  changeSets: 'zset',
} as const satisfies Partial<Record<keyof CollectionKeys, string>>;

type TypedKey = keyof typeof types;

/** The damage of a collection's bookkeeping keys, and the repaired values. */
interface KeyDamage {
  /** As sentences; none if everything is intact. */
  readonly damage: readonly string[];
  /** JSON text of the live version's document; `''` for none. */
  readonly live: string;
  /** JSON texts of the kept versions' documents, by number. */
  readonly documents: ReadonlyMap<number, string>;
  /** Keys that are deleted. */
  readonly dropped: readonly string[];
  /** Versions whose documents are lost, and contents that no other version uses. */
  readonly lost: Leaving;
}

/** Fails an import or a rollback if a key is damaged. @throws DamagedKeyError that names the command to run */
export async function requireIntactKeys(
  redis: Redis,
  collection: string,
  keys: CollectionKeys,
): Promise<void> {
  const [damage] = (await readKeyDamage(redis, keys)).damage;
  if (damage !== undefined)
    throw new DamagedKeyError(`${damage} Run "medref verify ${collection} --repair".`);
}

/**
 * Repairs damaged bookkeeping keys. The version of the pointer becomes live or, if the pointer is stale or unreadable, the
 * latest kept version. A version whose document is lost is deleted.
 * @returns the repairs, as sentences; none if everything was intact
 * @throws LockLostError
 */
export async function repairKeys(redis: Redis, lock: Lock): Promise<string[]> {
  const { keys } = lock;
  const { damage, live, documents, dropped, lost } = await readKeyDamage(redis, keys);
  const latest = Math.max(0, ...documents.keys());
  const next = dropped.includes(keys.next) ? 0 : Number((await redis.get(keys.next)) ?? 0);
  const writes = [keys.live, keys.versions, keys.versionDocuments, ...dropped].map(
    (key): Write => ['UNLINK', key],
  );
  if (live !== '') writes.push(['SET', keys.live, live]);
  for (const [number, text] of documents)
    writes.push(['ZADD', keys.versions, number, number], ['HSET', keys.versionDocuments, number, text]);
  // A version number is never used twice.
  if (next < latest) writes.push(['SET', keys.next, latest]);
  if (damage.length > 0) await writeLocked(redis, lock, writes);
  if (lost.versions.length > 0) await retain(redis, lock, lost, graceMs);
  return damage.map((it) => `${it} It was repaired.`);
}

/** Looks for damaged bookkeeping keys. */
export async function readKeyDamage(redis: Redis, keys: CollectionKeys): Promise<KeyDamage> {
  const damage: string[] = [];
  const dropped = new Set<string>();
  const drop = (key: string, is: string) => {
    dropped.add(key);
    damage.push(`The Redis key ${key} ${is}.`);
  };
  const names = Object.keys(types) as TypedKey[];
  const foundTypes = await Promise.all(names.map((name) => redis.type(keys[name])));
  for (const [n, name] of names.entries()) {
    const [type, found] = [types[name], foundTypes[n]];
    if (found !== type && found !== 'none') drop(keys[name], `is a ${found}, not a ${type}`);
  }
  const readable = (name: TypedKey, text: string | null, parse: Parse = parseStored): text is string => {
    if (text === null) return false;
    if (canParse(keys[name], text, parse)) return true;
    drop(keys[name], 'holds unexpected text');
    return false;
  };
  const textOf = async (name: TypedKey) => (dropped.has(keys[name]) ? null : redis.get(keys[name]));
  for (const name of ['pause', 'validators'] as const) readable(name, await textOf(name));
  readable('candidate', await textOf('candidate'), parseCandidate);
  if (!/^\d*$/.test((await textOf('next')) ?? '')) drop(keys.next, 'holds something that is no number');
  const { pointer, stored, numbers } = await readTogether(redis, keys);
  const named = readable('live', pointer, parseVersion) ? parseVersion(keys.live, pointer) : null;

  const documents = new Map<number, string>();
  const documentsKey = `The Redis key ${keys.versionDocuments}`;
  for (const [number, text] of Object.entries(stored)) {
    if (!canParse(keys.versionDocuments, text, parseVersion)) {
      damage.push(`${documentsKey} holds no document of version ${number}.`);
      continue;
    }
    const { version } = parseVersion(keys.versionDocuments, text);
    if (version !== Number(number))
      damage.push(`${documentsKey} has the document of version ${version} under the number ${number}.`);
    documents.set(version, text);
  }
  const latest = Math.max(0, ...documents.keys());
  // Numbers only grow: the live version is the latest.
  const live = named !== null && named.version >= latest ? pointer : null;
  if (named !== null && live !== null) {
    if (documents.get(named.version) !== live && damage.length === 0)
      damage.push(
        `${documentsKey} has another document of the live version ${named.version} than ${keys.live}.`,
      );
    documents.set(named.version, live);
  }
  const isListed = numbers.length === documents.size && numbers.every((it) => documents.has(Number(it)));
  if (!isListed && damage.length === 0)
    damage.push(`The Redis key ${keys.versions} does not list the kept versions.`);
  if (live === null && latest > 0 && damage.length === 0) {
    const is = named === null ? 'is missing' : `names version ${named.version} as the live one`;
    damage.push(`The Redis key ${keys.live} ${is}, and the latest version is ${latest}.`);
  }
  const lost = lostOf(documents, [...Object.keys(stored), ...numbers].map(Number));
  return { damage, live: live ?? documents.get(latest) ?? '', documents, dropped: [...dropped], lost };
}

function lostOf(documents: ReadonlyMap<number, string>, named: readonly number[]): Leaving {
  const versions = [...new Set(named)].filter((number) => !documents.has(number));
  const inUse = new Set([...documents.values()].map((text) => parseVersion('', text).content));
  return { versions, contents: versions.map(String).filter((content) => !inUse.has(content)) };
}

/** Reads these keys in one step, so that no publication happens in between. */
async function readTogether(redis: Redis, keys: CollectionKeys) {
  const read = () =>
    redis.multi().get(keys.live).hgetall(keys.versionDocuments).zrange(keys.versions, 0, '-1');
  const [pointer, stored, numbers] = await execute(read, isWrongType); // The types are checked below.
  return {
    pointer: (pointer ?? null) as string | null,
    stored: (stored ?? {}) as Record<string, string>,
    numbers: (numbers ?? []) as string[],
  };
}

type Parse = (key: string, text: string) => unknown;

function canParse(key: string, text: string, parse: Parse): boolean {
  try {
    parse(key, text);
    return true;
  } catch {
    return false;
  }
}
