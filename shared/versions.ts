// The life of a version: its number, its document, what is live, what is kept, what is let go and what is swept away.

import type { ServedCollection } from './collections/collection.ts';
import type { CollectionKeys, ContentKeys, ContentName, PartKeys } from './keys.ts';
import { rangeIds } from './list-order.ts';
import type { Redis } from './redis.ts';
import { type Conclusion, discard, type Held, type KeySize, publish, retain } from './scripts.ts';
import { pageEntries } from './search-index.ts';

/** How full a content is: records by JSON path of a member that is filled in them, and elements of arrays by theirs. */
export interface Profile {
  readonly filled: Readonly<Record<string, number>>;
  readonly elements: Readonly<Record<string, number>>;
}

/** What is known of the content of one collection. */
export interface ContentFacts {
  readonly totalCount: number;
  /** SHA-256 of the valid records in order, hexadecimal. */
  readonly checksum: string;
  /** How many blocks are stored; those of very large records are not. */
  readonly blocks: number;
  /** How many entries its search index has. */
  readonly entries: number;
}

/** What is known of a published version; its JSON text is stored as it is, with the live pointer and among the kept. */
export interface Version extends ContentFacts {
  readonly version: number;
  /** Number of the content it holds: its own, unless it is a rollback. */
  readonly content: number;
  /** When it became live, ISO 8601. */
  readonly publishedAt: string;
  /** Whether it was published past its checks. */
  readonly forced: boolean;
  readonly profile: Profile;
  /** What it has of the collections that are derived from its own, by their names. */
  readonly derived: Readonly<Record<string, ContentFacts>>;
}

/** A content, and that of each collection which is derived from it. */
type StoredContent = ContentFacts & Pick<Version, 'derived'> & { readonly content: ContentName };

/** A version with the facts of a served collection, which may be derived; `null` when it has nothing of that. */
export function versionOf<It extends Version>(
  { collection, source }: ServedCollection,
  version: It,
): It | null {
  if (collection === source) return version;
  const facts = version.derived[collection.name];
  return facts ? { ...version, ...facts } : null;
}

/** The live version with the exact text of its document, by which a publication tells whether it has moved. */
export interface LiveVersion extends Version {
  readonly document: string;
}

/** Scheduled imports of a collection are skipped since then, because of a rollback to this version. */
export interface Hold {
  readonly since: string;
  readonly version: number;
}

/** How long a content that is not kept any more can still be read, in ms: longer than the longest request. */
const graceMs = 60_000;

/** Of how many versions the change sets are kept, and so from how far back changes can be asked for. */
export const keptChangeSets = 100;

/** The live version of a collection, or `null` when nothing was published yet. */
export async function readLiveVersion(redis: Redis, keys: CollectionKeys): Promise<LiveVersion | null> {
  const document = await redis.get(keys.live);
  return document === null ? null : { ...(JSON.parse(document) as Version), document };
}

/** A kept version of a collection, or `null` when it is not kept or never was. */
export async function readKeptVersion(
  redis: Redis,
  keys: CollectionKeys,
  version: number,
): Promise<Version | null> {
  const document = await redis.hget(keys.versionDocuments, String(version));
  return document === null ? null : (JSON.parse(document) as Version);
}

/** The kept versions of a collection, oldest first. */
export async function readKeptVersions(redis: Redis, keys: CollectionKeys): Promise<Version[]> {
  const documents = await redis.hvals(keys.versionDocuments);
  return documents.map((text) => JSON.parse(text) as Version).sort((a, b) => a.version - b.version);
}

/** The hold of a collection, or `null` when its schedule runs. */
export async function readHold(redis: Redis, keys: CollectionKeys): Promise<Hold | null> {
  const text = await redis.get(keys.hold);
  return text === null ? null : (JSON.parse(text) as Hold);
}

/** Lifts the hold of a collection. @returns whether there was one */
export async function liftHold(redis: Redis, keys: CollectionKeys): Promise<boolean> {
  return (await redis.del(keys.hold)) === 1;
}

/** Whether a content of this checksum was rolled back from, and not been wanted again since. */
export async function isUndone(redis: Redis, keys: CollectionKeys, checksum: string): Promise<boolean> {
  return (await redis.sismember(keys.undone, checksum)) === 1;
}

/** Whether all of a content is there, of a version or as it was staged. */
export async function isWhole(redis: Redis, keys: CollectionKeys, version: StoredContent): Promise<boolean> {
  const measured = await Promise.all(
    sizesOf(keys, version).map(async ({ key, command, size }) => {
      const found = await (command === 'HLEN' ? redis.hlen(key) : redis.zcard(key));
      return found === size;
    }),
  );
  return !measured.includes(false);
}

/** Every key of a content with the size that it must have. */
function sizesOf(keys: CollectionKeys, { content, derived, ...facts }: StoredContent): KeySize[] {
  const parts: (readonly [PartKeys, ContentFacts])[] = [
    [keys, facts],
    ...Object.entries(derived).map(([name, its]) => [keys.derived(name), its] as const),
  ];
  return parts.flatMap(([part, its]) => contentSizes(part.content(content), its));
}

function contentSizes(keys: ContentKeys, { totalCount, blocks, entries }: ContentFacts): KeySize[] {
  const pages = Math.ceil(entries / pageEntries);
  return [
    { key: keys.records, command: 'HLEN', size: totalCount },
    { key: keys.order, command: 'HLEN', size: Math.ceil(totalCount / rangeIds) },
    { key: keys.blocks, command: 'HLEN', size: blocks },
    { key: keys.entries, command: 'HLEN', size: pages },
    { key: keys.fences, command: 'ZCARD', size: pages },
  ];
}

/** Lets go of the oldest kept versions where more are kept than wanted. @throws LockLostError */
export async function retainVersions(redis: Redis, held: Held, keepVersions: number): Promise<void> {
  const kept = await readKeptVersions(redis, held.keys);
  const leaving = leavingVersions(kept.slice(0, -1), keepVersions, kept.at(-1)?.content ?? 0);
  if (leaving.versions.length > 0) await retain(redis, held, leaving, graceMs);
}

/** A version that is to become live. */
export interface NextVersion extends Omit<Version, 'version' | 'publishedAt'> {
  readonly number: number;
  /** The version that is live now. */
  readonly live: LiveVersion | null;
  /**
   * How many ids the change set of each part has, against the live version; `null` where it could not be compared:
   * then changes cannot be asked for from before it.
   */
  readonly changeSets: readonly (number | null)[];
  /** How many versions are kept, this one among them. */
  readonly keepVersions: number;
  /** Set by a rollback; `null` lifts it. */
  readonly hold: Hold | null;
  /** Checksum of the content that is rolled back from. */
  readonly undone: string | null;
  /** JSON text of the upstream's validators. */
  readonly validators: string | null;
}

/**
 * Makes a version live, under a lock.
 * @throws LockLostError; NotPublishedError when another version went live; StagedLostError when the content is not whole
 */
export async function publishVersion(
  redis: Redis,
  held: Held,
  next: NextVersion,
  conclusion: Conclusion,
): Promise<void> {
  const { number, content, live, checksum } = next;
  const now = new Date();
  const version: Version = {
    ...{ version: number, content, publishedAt: publicationTime(now, live).toISOString() },
    ...{ totalCount: next.totalCount, checksum, blocks: next.blocks, entries: next.entries },
    ...{ forced: next.forced, profile: next.profile, derived: next.derived },
  };
  const kept = await readKeptVersions(redis, held.keys);
  const lastToGo = next.changeSets[0] === null ? -1 : -keptChangeSets - 1;
  const changeSets = await redis.zrange(held.keys.changeSets, 0, String(lastToGo));
  await publish(
    redis,
    held,
    {
      ...{ number, content, graceMs, sizes: sizesOf(held.keys, version) },
      document: JSON.stringify(version),
      changes: next.changeSets,
      expectedLive: live?.document ?? '',
      leaving: { ...leavingVersions(kept, next.keepVersions, content), changeSets: changeSets.map(Number) },
      hold: next.hold ? JSON.stringify(next.hold) : '',
      undone: next.undone ?? '',
      redone: checksum,
      checkedAt: next.hold ? '' : now.toISOString(),
      validators: next.validators ?? '',
    },
    conclusion,
  );
}

/**
 * What leaves when one more version is published.
 * @param kept versions kept so far
 * @param keep how many may be kept, the new one among them
 * @param content the content of the new one
 * @returns the versions that leave, and the contents that only they hold
 */
export function leavingVersions(
  kept: readonly Version[],
  keep: number,
  content: number,
): { versions: readonly number[]; contents: readonly number[] } {
  const leaving = kept.slice(0, Math.max(0, kept.length - (keep - 1)));
  const staying = new Set([content, ...kept.slice(leaving.length).map((version) => version.content)]);
  const contents = new Set(
    leaving.map((version) => version.content).filter((number) => !staying.has(number)),
  );
  return { versions: leaving.map(({ version }) => version), contents: [...contents] };
}

/**
 * When a version that is published now became live: no two versions of a collection share a second,
 * since HTTP dates (`Last-Modified`) tell them apart by the second alone.
 */
export function publicationTime(now: Date, live: Version | null): Date {
  if (!live) return now;
  const next = (Math.floor(Date.parse(live.publishedAt) / 1000) + 1) * 1000;
  return new Date(Math.max(now.getTime(), next));
}

/** Unlinks what imports that died have staged: whatever is staged, since the caller holds the lock. @throws LockLostError */
export async function sweepStaged(redis: Redis, held: Held): Promise<void> {
  for (const name of await redis.smembers(held.keys.staged)) {
    await discard(redis, held, name);
  }
}
