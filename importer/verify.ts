// In: a collection. Out: what of all that is stored of it is not as it was stored.

import { crc32 } from 'node:zlib';
import type { Collection } from '../shared/collections/define.ts';
import { currentFormat } from '../shared/formats/content-format.ts';
import { bytes, entriesAt, keyIn, unrankedEntryOf } from '../shared/formats/search-entries.ts';
import type { Redis } from '../shared/redis/connections.ts';
import type { CollectionKeys } from '../shared/store/keys.ts';
import { keptVersionOf, type StoredContent, type Version } from '../shared/store/versions.ts';
import { changeSetDamage, type DamagedChanges } from './publishing/change-set-damage.ts';
import { type ContentWitness, contentDamage } from './publishing/content-damage.ts';
import { readKeyDamage } from './publishing/mended-keys.ts';
import { FrequentKeys } from './writing/frequent-keys.ts';

/** How much damage of one content is told, in sentences. */
const maxTold = 100;

/** A content that is not as it was stored. */
export interface DamagedContent {
  /** The versions that hold it, oldest first. */
  readonly versions: readonly Version[];
  /** What is wrong, as sentences; the first of them. */
  readonly damage: readonly string[];
}

/** What was found of a collection. */
export interface Verification {
  /** The kept versions that were read, oldest first, and how many records they have, those of each content counted once. */
  readonly versions: readonly number[];
  readonly records: number;
  /** What is wrong with the keys that say which versions there are, as sentences. */
  readonly keys: readonly string[];
  readonly contents: readonly DamagedContent[];
  readonly changeSets: readonly DamagedChanges[];
}

/** Whether anything was found damaged. */
export function isDamaged({ keys, contents, changeSets }: Verification): boolean {
  return keys.length + contents.length + changeSets.length > 0;
}

/**
 * Reads everything that is stored of the kept versions of a collection, in bounded pieces, and holds it against its
 * checksums. A content that is let go meanwhile is not told of.
 */
export async function verify(
  redis: Redis,
  keys: CollectionKeys,
  collection: Collection,
): Promise<Verification> {
  const { damage } = await readKeyDamage(redis, keys);
  const kept = await readReadable(redis, keys);
  const contents: DamagedContent[] = [];
  for (const versions of byContent(kept)) {
    const found = await contentFaults(redis, keys, collection, versions[0] as Version);
    const stillKept = new Set((await readReadable(redis, keys)).map(({ stored }) => stored));
    if (found.length > 0 && stillKept.has((versions[0] as Version).stored))
      contents.push({ versions, damage: found });
  }
  return {
    versions: kept.map(({ version }) => version),
    records: byContent(kept).reduce((sum, [first]) => sum + (first as Version).totalCount, 0),
    ...{ keys: damage, contents, changeSets: await changeSetDamage(redis, keys) },
  };
}

/** The kept versions whose documents can be read, oldest first. */
async function readReadable(redis: Redis, keys: CollectionKeys): Promise<Version[]> {
  const isHash = (await redis.type(keys.versionDocuments)) === 'hash';
  const documents = isHash ? await redis.hgetall(keys.versionDocuments) : {};
  const versions = Object.entries(documents).flatMap(([number, text]) => {
    try {
      return [keptVersionOf(keys, Number(number), text)];
    } catch {
      return []; // Told with the keys.
    }
  });
  return versions.sort((a, b) => a.version - b.version);
}

/** Versions that hold the same content, together. */
function byContent(kept: readonly Version[]): Version[][] {
  const groups = new Map<string, Version[]>();
  for (const version of kept) {
    const group = groups.get(String(version.stored));
    if (group) group.push(version);
    else groups.set(String(version.stored), [version]);
  }
  return [...groups.values()];
}

async function contentFaults(
  redis: Redis,
  keys: CollectionKeys,
  collection: Collection,
  content: StoredContent,
): Promise<string[]> {
  const faults: string[] = [];
  let more = 0;
  for await (const fault of contentDamage(redis, keys, content, (derived) =>
    content.format === currentFormat ? indexWitness(collectionOf(collection, derived)) : {},
  )) {
    if (faults.length < maxTold) faults.push(fault);
    else more += 1;
  }
  return more === 0 ? faults : [...faults, `There are ${more} more of them.`];
}

function collectionOf(collection: Collection, derived: string | null): Collection {
  const found = (collection.derived ?? []).find((it) => it.collection.name === derived);
  return found ? found.collection : collection;
}

/**
 * Adds up the entries that an index has, and those that it should have: of its records, and of its frequent keys. Folding
 * differs between formats.
 */
function indexWitness(collection: Collection): ContentWitness {
  let [expected, found, place] = [0, 0, 0];
  const frequentKeys = new FrequentKeys();
  return {
    record: (text) => {
      const record: unknown = JSON.parse(text.toString());
      const id = collection.idOf(record);
      const unranked = bytes(unrankedEntryOf(collection, { record, id, place }));
      place += 1;
      for (const entry of new Set(entriesAt(unranked, 0))) expected = (expected + sumOf(entry)) % 2 ** 48;
    },
    entry: (entry) => {
      found = (found + sumOf(entry)) % 2 ** 48;
      for (const further of frequentKeys.take(entry)) expected = (expected + sumOf(further)) % 2 ** 48;
    },
    verdict: ({ entries }) =>
      expected === found ? null : `The index ${entries} does not have the entries of its records.`,
  };
}

/** Of an entry but for the rank of its name, where it is one of a key: only the index knows that. */
function sumOf(entry: string): number {
  if (keyIn(entry) === null) return crc32(Buffer.from(entry, 'latin1'));
  const [key, place, , drug, id] = entry.split('\0');
  return crc32(Buffer.from(`${key}\0${place}\0${drug}\0${id}`, 'latin1'));
}
