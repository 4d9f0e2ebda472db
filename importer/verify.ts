// In: a collection. Out: what of all that is stored of it is not as it was stored.

import type { Collection } from '../shared/collections/define.ts';
import type { Redis } from '../shared/redis/connections.ts';
import type { CollectionKeys } from '../shared/store/keys.ts';
import { keptVersionOf, type StoredContent, type Version } from '../shared/store/versions.ts';
import { contentDamage } from './integrity.ts';
import { changeSetDamage, type DamagedChanges } from './publishing/change-set-damage.ts';
import { readKeyDamage } from './publishing/mended-keys.ts';

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
 * checksums. Marks a damaged content, so that the next import rebuilds it if it is live.
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
    const stillKept = new Set((await readReadable(redis, keys)).map(({ content }) => content));
    const { content } = versions[0] as Version;
    if (found.length > 0 && stillKept.has(content)) {
      contents.push({ versions, damage: found });
      await redis.hset(keys.damaged, content, found[0] as string);
    } else await redis.hdel(keys.damaged, content);
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
    const group = groups.get(version.content);
    if (group) group.push(version);
    else groups.set(version.content, [version]);
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
  for await (const fault of contentDamage(redis, keys, { collection, content })) {
    if (faults.length < maxTold) faults.push(fault);
    else more += 1;
  }
  return more === 0 ? faults : [...faults, `There are ${more} more of them.`];
}
