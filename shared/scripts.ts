// The Lua scripts of scripts/, each behind a typed function that turns its reply code into a named outcome.

import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import type { Redis } from 'ioredis';
import type { CollectionKeys, ContentName, PartKeys } from './keys.ts';

/** The caller's lock has expired or was taken over; nothing was written. */
export class LockLostError extends Error {
  constructor() {
    super(
      'The import lost its lock, so it may not write any more; another import may have started. Run it again.',
    );
  }
}

/** A staged version that could not be published; nothing of it was made visible. */
export class NotPublishedError extends Error {}

/** Redis has lost a part of what was staged, such as the last writes before a crash; staged again, it may stay. */
export class StagedLostError extends NotPublishedError {
  constructor() {
    super('Redis has lost a part of what was staged. Run it again.');
  }
}

/** One record on its way into a staged version. */
export interface StagedRecord {
  /** Position upstream, from 1. */
  readonly position: number;
  readonly id: number;
  /** On one line. */
  readonly json: string;
}

/** A record of a batch whose id came before. */
export interface Duplicate {
  /** Index in the batch. */
  readonly index: number;
  /** Position of the first record with that id. */
  readonly firstPosition: number;
  /** Whether the first one is the same record. */
  readonly isSame: boolean;
}

/** What a script needs of a collection and of the lock that its caller holds. */
export interface Held {
  readonly keys: CollectionKeys;
  readonly token: string;
}

/** Something staged under a lock, which expires `lifetimeMs` after its last renewal. */
export interface Staging extends Held {
  readonly name: ContentName;
  readonly lifetimeMs: number;
}

/**
 * Begins to stage.
 * @param name that never becomes a version's number; `''`: a number is taken, which only grows and is never given twice
 * @returns the name that is staged under
 * @throws LockLostError
 */
export async function begin(
  redis: Redis,
  { keys, token }: Held,
  { name, lifetimeMs }: { name: 'dry-run' | ''; lifetimeMs: number },
): Promise<ContentName> {
  const reply = await run(
    redis,
    scripts.begin,
    [keys.lock, keys.staged, keys.next],
    [token, name, lifetimeMs],
  );
  return name || Number(heldReply(reply));
}

/** Writes a batch into the staged content of a part. @returns the duplicates in it. @throws LockLostError */
export async function stage(
  redis: Redis,
  { keys, token, name, lifetimeMs }: Staging,
  part: PartKeys,
  records: readonly StagedRecord[],
): Promise<Duplicate[]> {
  // Few large arguments: each one costs this process and Redis about as much as a record.
  const places = records.map(({ position, id }) => `${position} ${id}`).join(' ');
  const lines = records.map(({ json }) => `${json}\n`).join('');
  const reply = await run(
    redis,
    scripts.stage,
    [keys.lock, keys.staged, part.workspace(name).positions, part.content(name).records],
    [token, name, lifetimeMs, places, Buffer.from(lines)],
  );
  const flat = heldReply(reply) as number[];
  const duplicates: Duplicate[] = [];
  for (let i = 0; i < flat.length; i += 3) {
    const [index, firstPosition, same] = flat.slice(i, i + 3) as [number, number, number];
    duplicates.push({ index: index - 1, firstPosition, isSame: same === 1 });
  }
  return duplicates;
}

/** What the records of one block of a staged content are listed by. */
export interface ArrangedBlock {
  /** From 0. */
  readonly number: number;
  /** Their ids in list order, packed as in list-order.ts. */
  readonly order: Buffer;
  /** As in block.ts; `null` where the records are too large for one. */
  readonly stored: Buffer | null;
}

/** Writes what staged records are listed by. @throws LockLostError */
export async function arrange(
  redis: Redis,
  { keys, token, name, lifetimeMs }: Staging,
  part: PartKeys,
  blocks: readonly ArrangedBlock[],
): Promise<void> {
  const content = part.content(name);
  const reply = await run(
    redis,
    scripts.arrange,
    [keys.lock, keys.staged, content.order, content.blocks],
    [
      ...[token, name, lifetimeMs],
      ...blocks.flatMap(({ number, order, stored }) => [number, order, stored ?? '']),
    ],
  );
  heldReply(reply);
}

/** A piece of a sorted run of entries: its name, and the entries. */
export type RunPiece = readonly [name: string, entries: Buffer];

/** Lets Redis keep pieces of sorted runs of a staged search index, until they are merged. @throws LockLostError */
export async function sort(
  redis: Redis,
  { keys, token, name, lifetimeMs }: Staging,
  part: PartKeys,
  pieces: readonly RunPiece[],
): Promise<void> {
  const sorted = [keys.lock, keys.staged, part.workspace(name).sorting];
  heldReply(await run(redis, scripts.sort, sorted, [token, name, lifetimeMs, ...pieces.flat()]));
}

/** A page of a search index. */
export interface EntryPage {
  /** From 0. */
  readonly number: number;
  readonly stored: Buffer;
  /** Its first entry. */
  readonly fence: Buffer;
}

/** Writes pages of a staged search index. @throws LockLostError */
export async function seal(
  redis: Redis,
  { keys, token, name, lifetimeMs }: Staging,
  part: PartKeys,
  pages: readonly EntryPage[],
): Promise<void> {
  const { entries, fences } = part.content(name);
  const reply = await run(
    redis,
    scripts.seal,
    [keys.lock, keys.staged, entries, fences],
    [token, name, lifetimeMs, ...pages.flatMap(({ number, stored, fence }) => [number, stored, fence])],
  );
  heldReply(reply);
}

/** A step of a comparison: which content of a part is walked, and where, against which other one. */
export interface Comparison {
  readonly part: PartKeys;
  readonly walked: ContentName;
  readonly other: ContentName;
  /** Whether the walked content is the newer one, or the older one. */
  readonly walks: 'after' | 'before';
  /** Number of the part of the order that is walked, from 0. */
  readonly range: number;
}

/**
 * Compares a part of one content with another, and writes what differs into a staged change set.
 * @returns how many ids are only in the walked content, and how many records differ (told where `after` is walked)
 * @throws LockLostError
 */
export async function compare(
  redis: Redis,
  { keys, token, name, lifetimeMs }: Staging,
  { part, walked, other, walks, range }: Comparison,
): Promise<{ alone: number; different: number }> {
  const { order, records } = part.content(walked);
  const reply = await run(
    redis,
    scripts.compare,
    [keys.lock, keys.staged, order, records, part.content(other).records, part.changeSet(name)],
    [token, name, lifetimeMs, range, walks],
  );
  const [alone, different] = heldReply(reply) as [number, number];
  return { alone, different };
}

/** Renews a lock and the lifetime of what is staged under it. @throws LockLostError */
export async function renew(
  redis: Redis,
  { keys, token, name, lifetimeMs }: Staging,
  lockMs: number,
): Promise<void> {
  const renewed = [keys.lock, keys.staged, ...stagedKeys(keys, name)];
  heldReply(await run(redis, scripts.renew, renewed, [token, name, lockMs, lifetimeMs]));
}

/** Gives a lock back; one that is not the caller's any more is left alone. */
export async function release(redis: Redis, { keys, token }: Held): Promise<void> {
  await run(redis, scripts.release, [keys.lock], [token]);
}

/** How large a key must be. */
export interface KeySize {
  readonly key: string;
  readonly command: 'HLEN' | 'ZCARD';
  readonly size: number;
}

/** A version to be made live, with all that changes in the same step. */
export interface Publication {
  readonly number: number;
  /** The content it holds: its own, or for a rollback a kept one. */
  readonly content: number;
  /** JSON text of the version's document. */
  readonly document: string;
  /** JSON text of the live version's document that the caller compared with; `''` when there was none. */
  readonly expectedLive: string;
  /** Every key of the content with the command that measures it and the size that it must have. */
  readonly sizes: readonly KeySize[];
  /** What is let go: versions, contents that no kept version holds any more, change sets. */
  readonly leaving: {
    readonly versions: readonly number[];
    readonly contents: readonly number[];
    readonly changeSets: readonly number[];
  };
  readonly graceMs: number;
  /**
   * Of each part, in their order, how many ids its change set has; `null` where it was compared with nothing. Their
   * number is kept in the set, so that a set that Redis has lost a part of is told from a smaller one.
   */
  readonly changes: readonly (number | null)[];
  /** JSON text of the hold that is set; `''` lifts it. */
  readonly hold: string;
  /** Checksum of the content that is rolled back from, and of one that is wanted again; `''` for none. */
  readonly undone: string;
  readonly redone: string;
  /** ISO 8601: when upstream was found to be as this version; `''` where it is not. */
  readonly checkedAt: string;
  /** JSON text of the upstream's validators; `''` for none. */
  readonly validators: string;
}

/** The history entry and the rejects with which an import ends. */
export interface Conclusion {
  /** JSON text of the import's report. */
  readonly report: string;
  readonly historyCap: number;
  /** JSON texts: a header, then the rejects; none leaves those of the import before. */
  readonly rejects: readonly string[];
}

/**
 * Publishes a version in one step; may be repeated when a reply was lost.
 * @throws LockLostError; NotPublishedError when another version went live; StagedLostError when the content is not whole
 */
export async function publish(
  redis: Redis,
  { keys, token }: Held,
  { content, sizes, changes, leaving, ...publication }: Publication,
  { rejects, ...entry }: Conclusion,
): Promise<void> {
  const { number } = publication;
  const changeSets = keys.parts.map((part) => part.changeSet(number));
  const workspace =
    content === number ? keys.parts.flatMap((part) => Object.values(part.workspace(number))) : [];
  const reply = await run(
    redis,
    scripts.publish,
    [
      ...[keys.lock, keys.live, keys.versions, keys.versionDocuments, keys.staged],
      ...[keys.imports, keys.rejects, keys.hold, keys.undone, keys.changeSets, keys.checked, keys.validators],
      keys.next,
      ...[...sizes.map(({ key }) => key), ...changeSets, ...workspace],
      ...leaving.contents.flatMap((leaves) => contentKeys(keys, leaves)),
      ...leaving.changeSets.flatMap((leaves) => keys.parts.map((part) => part.changeSet(leaves))),
    ],
    [
      JSON.stringify({
        ...{ token, ...publication, ...entry, leaving, channel: keys.announcements },
        sizes: sizes.map(({ command, size }) => [command, size]),
        changes: changes.map((size) => size ?? -1),
        workspaceKeys: workspace.length,
      }),
      ...rejects,
    ],
  );
  requirePublished(reply as number);
}

/** How an import ends that published nothing. */
export interface UnpublishedEnd {
  /** What was staged; `''` for nothing. */
  readonly name: ContentName | '';
  /** ISO 8601 when upstream was found to be as the live version; `''` when it was not. */
  readonly checkedAt: string;
  /** JSON text of the upstream's validators; `''` deletes them, `'keep'` leaves them. */
  readonly validators: string;
}

/** Lets go of kept versions; what they alone hold expires after a grace period. @throws LockLostError */
export async function retain(
  redis: Redis,
  { keys, token }: Held,
  { versions, contents }: { readonly versions: readonly number[]; readonly contents: readonly number[] },
  graceMs: number,
): Promise<void> {
  const leaving = contents.flatMap((content) => contentKeys(keys, content));
  const retained = [keys.lock, keys.versions, keys.versionDocuments, ...leaving];
  heldReply(await run(redis, scripts.retain, retained, [token, graceMs, ...versions]));
}

/** What became of something staged that was to be dropped: it was, or it had been published after all. */
export type Dropped = 'dropped' | 'published';

/**
 * Ends an import that published nothing: drops what it staged, keeps its report and its rejects. May be repeated.
 * An import without the lock, whose token is `''`, only leaves its report.
 * @returns `'published'` when it had been published, by a reply that was lost; then nothing is done
 * @throws LockLostError
 */
export async function conclude(
  redis: Redis,
  { keys, token }: Held,
  end: UnpublishedEnd,
  { rejects, ...entry }: Conclusion,
): Promise<Dropped> {
  const reply = await run(
    redis,
    scripts.conclude,
    [
      ...[keys.lock, keys.staged, keys.imports, keys.rejects, keys.checked, keys.validators, keys.versions],
      ...(end.name === '' ? [] : stagedKeys(keys, end.name)),
    ],
    [JSON.stringify({ token, ...end, ...entry }), ...rejects],
  );
  return dropped(reply);
}

/** Drops what was staged under a name without a trace, unless it had been published. @throws LockLostError */
export async function discard(redis: Redis, { keys, token }: Held, name: ContentName): Promise<Dropped> {
  const discarded = [keys.lock, keys.staged, keys.versions, ...stagedKeys(keys, name)];
  return dropped(await run(redis, scripts.discard, discarded, [token, name]));
}

function dropped(reply: unknown): Dropped {
  return heldReply(reply) === 2 ? 'published' : 'dropped';
}

function heldReply(reply: unknown): unknown {
  if (reply === -1) throw new LockLostError();
  return reply;
}

function requirePublished(code: number): void {
  if (code === 1 || code === 2) return;
  if (code === -1) throw new LockLostError();
  if (code === -2) throw new NotPublishedError('Another version went live meanwhile. Run it again.');
  if (code === -3) throw new StagedLostError();
  throw new Error(`publish.lua gave the unknown code ${code}.`);
}

function contentKeys(keys: CollectionKeys, name: ContentName): string[] {
  return keys.parts.flatMap((part) => Object.values<string>(part.content(name)));
}

/** What an import stages under a name. */
export function stagedKeys(keys: CollectionKeys, name: ContentName): string[] {
  return [
    ...contentKeys(keys, name),
    ...keys.parts.flatMap((part) => [...Object.values<string>(part.workspace(name)), part.changeSet(name)]),
  ];
}

interface Script {
  readonly text: string;
  readonly sha: string;
}

const scripts = {
  begin: load('begin'),
  stage: load('stage'),
  arrange: load('arrange'),
  sort: load('sort'),
  seal: load('seal'),
  renew: load('renew'),
  release: load('release'),
  publish: load('publish'),
  retain: load('retain'),
  compare: load('compare'),
  discard: load('discard'),
  conclude: load('conclude'),
};

function load(name: string): Script {
  const text = readFileSync(new URL(`./scripts/${name}.lua`, import.meta.url), 'utf8');
  return { text, sha: createHash('sha1').update(text).digest('hex') };
}

/** Runs a script by its digest, and sends its text only where Redis does not have it. */
async function run(
  redis: Redis,
  script: Script,
  keys: string[],
  args: (string | number | Buffer)[],
): Promise<unknown> {
  try {
    return await redis.evalsha(script.sha, keys.length, ...keys, ...args);
  } catch (error) {
    if (!(error as Error).message.startsWith('NOSCRIPT')) throw error;
    return redis.eval(script.text, keys.length, ...keys, ...args);
  }
}
