// In: what was found damaged of a collection, under its lock. Out: made anew, as far as what is stored still tells it.

import type { Collection } from '../shared/collections/define.ts';
import type { LockHolder } from '../shared/lock-holder.ts';
import type { Redis } from '../shared/redis/connections.ts';
import { type Block, blockLines, openBlock } from '../shared/store/block.ts';
import { type CollectionKeys, collectionKeys } from '../shared/store/keys.ts';
import { rangeIds, unpackIds } from '../shared/store/packed-ids.ts';
import type { BegunVersion } from '../shared/store/scripts.ts';
import { discard, discardAll } from '../shared/store/scripts.ts';
import {
  type ContentFacts,
  currentFormat,
  documentOf,
  readKeptVersions,
  readLiveVersion,
  type StoredContent,
  type Version,
} from '../shared/store/versions.ts';
import { compareVersions } from './diff.ts';
import { contentDamage, readBlock, sizesOf } from './integrity.ts';
import { Lease } from './lease.ts';
import { graceMs } from './publish.ts';
import type { DamagedChanges } from './publishing/change-set-damage.ts';
import { mendKeys, readKeyDamage } from './publishing/mended-keys.ts';
import { forgetChanges } from './scripts/forget-changes.ts';
import { replaceChanges } from './scripts/replace-changes.ts';
import { replaceContent } from './scripts/replace-content.ts';
import { VersionWriter } from './stage.ts';
import { type DamagedContent, type Verification, verify } from './verify.ts';

/** What is stored does not tell a record any more. */
class UntoldError extends Error {}

/** How a repair ended. */
export type RepairResult =
  | { readonly found: Verification; readonly left: Verification; readonly done: readonly string[] }
  | { readonly outcome: 'locked'; readonly lock: LockHolder };

/** What is known of a content that was staged anew. */
type AnewFacts = ContentFacts & Pick<StoredContent, 'derived'>;

/** What a repair works on, under a lock. */
interface Repair {
  readonly redis: Redis;
  readonly keys: CollectionKeys;
  readonly collection: Collection;
  readonly lock: Lease;
}

/** Looks for damage under the lock of a collection, makes anew what can be, and looks again. */
export async function repair(
  collection: Collection,
  { redis, keyPrefix }: { redis: Redis; keyPrefix: string },
): Promise<RepairResult> {
  const keys = collectionKeys(keyPrefix, collection);
  const lock = await Lease.take(redis, keys);
  if (!(lock instanceof Lease)) return { outcome: 'locked', lock };
  try {
    const held = { keys, token: lock.token };
    const { damage } = await readKeyDamage(redis, keys);
    // These first: what they have lost sight of may hold a content that is damaged, too.
    const mended = await mendKeys(redis, held);
    await discardAll(redis, held);
    const found = { ...(await verify(redis, keys, collection)), keys: damage };
    const done = [...mended, ...(await makeAnew({ redis, keys, collection, lock }, found))];
    return { found, done, left: await verify(redis, keys, collection) };
  } finally {
    await lock.release().catch(() => undefined); // It expires by itself.
  }
}

/** @returns what was done, as sentences */
async function makeAnew(its: Repair, found: Verification): Promise<string[]> {
  const { redis, keys } = its;
  const done: string[] = [];
  for (const content of found.contents) done.push(await restoreContent(its, content));
  for (const changes of found.changeSets) done.push(await restoreChanges(its, changes));
  await redis.del(keys.damaged); // What readers have marked is looked at now; what could not be mended, verify finds.
  return done;
}

/** Writes a content anew, out of the records that its blocks and its records still tell. */
async function restoreContent(its: Repair, { versions }: DamagedContent): Promise<string> {
  const { redis, keys } = its;
  const old = versions[0] as Version;
  const numbers = versions.map(({ version }) => version).join(', ');
  try {
    const { begun, facts } = await stageAnew(its, old);
    const content: StoredContent = { ...facts, content: String(begun.name), format: currentFormat };
    const live = await readLiveVersion(redis, keys);
    const documents = versions.map(
      (version) => [version.version, documentOf({ ...version, ...content })] as const,
    );
    const itsLive = documents.find(([number]) => number === live?.version);
    await replaceContent(redis, begun, {
      ...{ was: old.content, documents, sizes: sizesOf(keys, content), graceMs },
      ...{ live: itsLive?.[1] ?? '', expectedLive: itsLive ? (live?.document ?? '') : '' },
    });
    return `The content of version ${numbers} was made anew.`;
  } catch (error) {
    if (!(error instanceof UntoldError)) throw error;
    return `The content of version ${numbers} cannot be made anew: ${error.message} Import it again.`;
  }
}

/** Where the records of a range are looked for first; one may be whole, and yet be of another content. */
type Source = 'blocks' | 'records';

/** Stages a content anew; where its blocks do not tell it, by its records. @throws UntoldError, with nothing staged */
async function stageAnew(
  its: Repair,
  old: Version,
  source: Source = 'blocks',
): Promise<{ begun: BegunVersion; facts: AnewFacts }> {
  const begun = await its.lock.begin(nextName(old));
  try {
    return { begun, facts: await writeAnew(its, begun, { old, source }) };
  } catch (error) {
    if (!(error instanceof UntoldError)) throw error;
    await discard(its.redis, begun, begun.name);
    if (source === 'records') throw error;
    return stageAnew(its, old, 'records');
  }
}

/** Returns the id of a content that is rebuilt: its number, and how often it was rebuilt. */
function nextName({ content }: Version): string {
  const [number, times = '0'] = content.split('.');
  return `${number}.${Number(times) + 1}`;
}

/** Stages the stored records of a version as an import stages those of upstream. @throws UntoldError if they are not those that were published */
async function writeAnew(
  { redis, keys, collection }: Repair,
  begun: BegunVersion,
  { old, source }: { old: Version; source: Source },
): Promise<AnewFacts> {
  const writer = new VersionWriter(redis, begun, collection);
  let position = 0;
  for (let range = 0; range * rangeIds < old.totalCount; range += 1) {
    const texts = await textsOf({ redis, keys }, old, { range, source });
    await writer.write(
      texts.map((json) => {
        position += 1;
        return { position, value: valueIn(json), flaw: null, raw: () => json };
      }),
    );
  }
  const { content, derived } = await writer.finish();
  if (content.checksum !== old.checksum)
    throw new UntoldError('The stored records do not match the checksum of the version.');
  for (const [name, { checksum }] of Object.entries(old.derived)) {
    if (derived[name]?.checksum !== checksum)
      throw new UntoldError(`The stored records do not match the checksum of the ${name} of the version.`);
  }
  return { ...content, derived };
}

/** @throws UntoldError */
function valueIn(json: string): unknown {
  try {
    return JSON.parse(json);
  } catch {
    throw new UntoldError('A stored record is not JSON text.');
  }
}

/** Returns the records of a range as JSON texts, from its block or one by one. @throws UntoldError if neither is complete */
async function textsOf(
  its: Pick<Repair, 'redis' | 'keys'>,
  old: Version,
  { range, source }: { range: number; source: Source },
): Promise<string[]> {
  const [first, second] = source === 'blocks' ? [blockTexts, recordTexts] : [recordTexts, blockTexts];
  const texts = (await first(its, old, range)) ?? (await second(its, old, range));
  if (texts) return texts;
  throw new UntoldError(`Neither the block nor all records of range ${range} are complete.`);
}

type RangeReader = (
  its: Pick<Repair, 'redis' | 'keys'>,
  old: Version,
  range: number,
) => Promise<string[] | null>;

const blockTexts: RangeReader = async ({ redis, keys }, old, range) => {
  const stored = await bytesOf(redis, keys.content(old.content).blocks, range);
  const text = stored && readBlock(stored);
  if (!stored || !text) return null;
  const block = openBlock(stored) as Block;
  return blockLines(block).toString().split('\n').slice(0, -1);
};

const recordTexts: RangeReader = async ({ redis, keys }, old, range) => {
  const { order, records } = keys.content(old.content);
  const packed = await bytesOf(redis, order, range);
  const ids = packed ? unpackIds(packed) : [];
  const areRecords = (await redis.type(records)) === 'hash' && ids.length > 0;
  const texts = areRecords ? await redis.hmget(records, ...ids) : [];
  return texts.length === 0 || texts.includes(null) ? null : (texts as string[]);
};

async function bytesOf(redis: Redis, key: string, field: number): Promise<Buffer | null> {
  return (await redis.type(key)) === 'hash' ? redis.hgetBuffer(key, String(field)) : null;
}

/** Compares the versions again, or else lets go of all changes up to there: who asks is told to read the whole list. */
async function restoreChanges(its: Repair, { version, previous }: DamagedChanges): Promise<string> {
  const { redis, keys, lock } = its;
  const kept = new Map((await readKeptVersions(redis, keys)).map((it) => [it.version, it]));
  const [before, after] = [kept.get(previous), kept.get(version)];
  if (before && after && (await isWhole(its, before)) && (await isWhole(its, after))) {
    const begun = await lock.begin(`changes-${version}`);
    const { changeSets: facts } = await compareVersions(redis, begun, { before, after });
    await replaceChanges(redis, begun, { version, facts });
    return `The change set of version ${version} was made anew.`;
  }
  const older = (await redis.zrangebyscore(keys.changeSets, '-inf', `(${version}`)).map(Number);
  await forgetChanges(redis, { keys, token: lock.token }, { version, before: older });
  return `The change set of version ${version} cannot be made anew; changes are told from version ${version} on.`;
}

async function isWhole({ redis, keys, collection }: Repair, version: Version): Promise<boolean> {
  for await (const _damage of contentDamage(redis, keys, { collection, content: version })) return false;
  return true;
}
