// The Lua scripts of this folder as typed functions. ioredis sends the text of a script once per connection, then its digest.

import { readFileSync } from 'node:fs';
import type { Redis } from '../redis/connections.ts';
import { type ChangeSetFacts, changeSetText } from './change-sets.ts';
import { type CollectionKeys, type ContentName, changeSetKeys, contentKeys, stagedKeys } from './keys.ts';

/** A collection under a lock. */
export interface Lock {
  readonly keys: CollectionKeys;
  /** Of the lock. */
  readonly token: string;
}

/** A version that was begun under a lock: what is staged of it expires `lifetimeMs` after its last renewal. */
export interface StagingSession extends Lock {
  readonly name: ContentName;
  readonly lifetimeMs: number;
}

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

/** Redis has lost a part of what was staged, such as the last writes before a crash; another attempt may succeed. */
export class StagedLostError extends NotPublishedError {
  constructor() {
    super('Redis has lost a part of what was staged. Run it again.');
  }
}

/** Begins a version. @param name `''`: takes a new number @returns the name that it is staged under @throws LockLostError */
export async function begin(
  redis: Redis,
  { keys, token }: Lock,
  { name, lifetimeMs }: { name: string; lifetimeMs: number },
): Promise<ContentName> {
  const touched = [keys.lock, keys.staged, keys.next, keys.versions, keys.changeSets];
  const reply = heldReply(await run(redis, 'begin', touched, [token, name, lifetimeMs]));
  return name || String(reply);
}

/** Renews a lock and the lifetime of what is staged under it. @throws LockLostError */
export async function renew(
  redis: Redis,
  { keys, token, name, lifetimeMs }: StagingSession,
  lockMs: number,
): Promise<void> {
  const renewed = [keys.lock, keys.staged, ...stagedKeys(keys, name)];
  heldReply(await run(redis, 'renew', renewed, [token, name, lockMs, lifetimeMs]));
}

/** Releases a lock; one that is not the caller's any more is left alone. */
export async function release(redis: Redis, { keys, token }: Lock): Promise<void> {
  await run(redis, 'locked', [keys.lock, keys.lock], [token, '["DEL"]']);
}

/** A write command: its name, its key and its further arguments. */
export type Write = readonly [name: string, key: string, ...args: (string | number)[]];

/** Runs write commands in one step; may be repeated if they may. @throws LockLostError */
export async function writeLocked(
  redis: Redis,
  { keys, token }: Lock,
  writes: readonly Write[],
): Promise<void> {
  if (writes.length === 0) return;
  const touched = [keys.lock, ...writes.map(([, key]) => key)];
  const commands = writes.map(([name, , ...args]) => JSON.stringify([name, ...args.map(String)]));
  heldReply(await run(redis, 'locked', touched, [token, ...commands]));
}

/** What leaves when versions are not kept any more. */
export interface Leaving {
  readonly versions: readonly number[];
  /** Contents that no kept version holds any more. */
  readonly contents: readonly ContentName[];
}

/** Deletes kept versions; what only they hold expires after a grace period. @throws LockLostError */
export async function retain(
  redis: Redis,
  lock: Lock,
  { versions, contents }: Leaving,
  graceMs: number,
): Promise<void> {
  const { keys } = lock;
  await writeLocked(redis, lock, [
    ...versions.map((version): Write => ['ZREM', keys.versions, version]),
    ...versions.map((version): Write => ['HDEL', keys.versionDocuments, version]),
    ...contents.map((content): Write => ['HDEL', keys.damaged, content]),
    ...contents
      .flatMap((content) => contentKeys(keys, content))
      .map((key): Write => ['PEXPIRE', key, graceMs]),
  ]);
}

/** Some records of a content that are compared with the records of another content. */
export interface Comparison {
  readonly keys: readonly [order: string, records: string, otherRecords: string];
  /** Number of the range of the order, from 0. */
  readonly range: number;
  /** How many ids of the range are skipped, and how many are compared. */
  readonly from: number;
  readonly count: number;
  /** `alone`: only ids that the other content lacks. */
  readonly only: 'all' | 'alone';
  /** How many records the other content has. */
  readonly otherCount: number;
}

/**
 * Compares some records of two contents.
 * @returns for each id that differs: the id, the SHA-1 of the walked record, and that of the other record or `-`; `null` if a
 *   part of a content is missing
 */
export async function compare(
  redis: Redis,
  { keys, range, from, count, only, otherCount }: Comparison,
): Promise<string[] | null> {
  const reply = await run(redis, 'compare', keys, [range, from, count, only, otherCount]);
  return reply === -1 ? null : (reply as string[]);
}

/** The history entry and the rejects with which an import ends. */
export interface Conclusion {
  /** JSON text of the import's report. */
  readonly report: string;
  readonly historyCap: number;
  /** JSON texts: a header, then the rejects; none leaves those of the import before. */
  readonly rejects: readonly string[];
}

/** What becomes of the upstream's validators. */
export type KeptValidators =
  | { readonly kind: 'keep' | 'delete' }
  | { readonly kind: 'set'; readonly text: string };

/** How an import ends that published nothing. */
export interface UnpublishedEnd {
  /** What was staged; `''` for nothing. */
  readonly name: ContentName | '';
  /** ISO 8601 when upstream was found to be as the live version; `''` when it was not. */
  readonly checkedAt: string;
  readonly validators: KeptValidators;
}

/** What became of something staged that was to be deleted: it was, or it had been published after all. */
export type Dropped = 'dropped' | 'published';

/**
 * Ends an import that published nothing: deletes what it staged, keeps its report and its rejects. May be repeated.
 * An import without the lock, whose token is `''`, only leaves its report.
 * @returns `'published'` if it had been published and only the reply was lost; then nothing is done
 * @throws LockLostError
 */
export async function conclude(
  redis: Redis,
  { keys, token }: Lock,
  { name, checkedAt, validators }: UnpublishedEnd,
  { rejects, ...entry }: Conclusion,
): Promise<Dropped> {
  const touched = [keys.lock, keys.staged, keys.imports, keys.rejects, keys.checked, keys.validators];
  const staged = name === '' ? [] : stagedKeys(keys, name);
  const stored = validators.kind === 'set' ? validators.text : validators.kind === 'keep' ? 'keep' : '';
  const end = { token, name, checkedAt, validators: stored, ...entry };
  const reply = await run(
    redis,
    'conclude',
    [...touched, keys.versions, ...staged],
    [JSON.stringify(end), ...rejects],
  );
  return heldReply(reply) === 2 ? 'published' : 'dropped';
}

/** Deletes what was staged under a name without a trace, unless it had been published. @throws LockLostError */
export function discard(redis: Redis, lock: Lock, name: ContentName): Promise<Dropped> {
  const end = { name, checkedAt: '', validators: { kind: 'keep' } } as const;
  return conclude(redis, lock, end, { report: '', historyCap: 0, rejects: [] });
}

/** Deletes what imports that died have staged; the caller holds the lock. @throws LockLostError */
export async function discardAll(redis: Redis, lock: Lock): Promise<void> {
  for (const name of await redis.smembers(lock.keys.staged)) await discard(redis, lock, name);
}

/** How a field of the hash of API keys is replaced. */
export interface KeyReplacement {
  /** The field. */
  readonly digest: string;
  /** Its expected value and its new value. */
  readonly from: string;
  readonly to: string;
  /** Further fields, each with its value behind it; at least one. */
  readonly also: readonly string[];
}

/** Replaces a field of the hash of API keys; may be repeated. @returns whether it had the expected value */
export async function replaceKey(
  redis: Redis,
  hash: string,
  { digest, from, to, also }: KeyReplacement,
): Promise<boolean> {
  return (await run(redis, 'replace-key', [hash], [digest, from, to, ...also])) === 1;
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
  /** JSON text of the version's document. */
  readonly document: string;
  /** JSON text of the live version's document that the caller compared with; `''` when there was none. */
  readonly expectedLive: string;
  /** Every key of the content with the command that measures it and the size that it must have. */
  readonly sizes: readonly KeySize[];
  readonly leaving: Leaving & { readonly changeSets: readonly number[] };
  readonly graceMs: number;
  /**
   * The facts of the change set of each part, in their order; `null` if there is nothing to compare with. They are stored in
   * the set, so that a set that Redis has lost a part of is recognized.
   */
  readonly changes: readonly (ChangeSetFacts | null)[];
  /** JSON text of the pause that is set; `''` ends it. */
  readonly pause: string;
  /** Checksum of the content that is rolled back from, and of one that is wanted again; `''` for none. */
  readonly rolledBack: string;
  readonly reinstated: string;
  /** ISO 8601: when upstream was found to be as this version; `''` if it is not. */
  readonly checkedAt: string;
  /** JSON text of the upstream's validators; `''` for none. */
  readonly validators: string;
}

/**
 * Publishes a version in one step; may be repeated when a reply was lost.
 * @throws LockLostError; NotPublishedError when another version went live; StagedLostError when the content is incomplete
 */
export async function publish(
  redis: Redis,
  { keys, token }: Lock,
  { sizes, changes, leaving, ...publication }: Publication,
  { rejects, ...entry }: Conclusion,
): Promise<void> {
  const { number } = publication;
  const reply = await run(
    redis,
    'publish',
    [
      ...[keys.lock, keys.live, keys.versions, keys.versionDocuments, keys.staged],
      ...[
        keys.imports,
        keys.rejects,
        keys.pause,
        keys.rolledBack,
        keys.changeSets,
        keys.checked,
        keys.validators,
      ],
      ...[keys.next, keys.damaged],
      ...[...sizes.map(({ key }) => key), ...changeSetKeys(keys, number)],
      ...leaving.contents.flatMap((content) => contentKeys(keys, content)),
      ...leaving.changeSets.flatMap((version) => changeSetKeys(keys, version)),
    ],
    [
      JSON.stringify({
        ...{ token, ...publication, ...entry, leaving, channel: keys.announcements },
        sizes: sizes.map(({ command, size }) => [command, size]),
        changes: changes.map((facts) => (facts ? [facts.size, changeSetText(facts)] : [-1, ''])),
      }),
      ...rejects,
    ],
  );
  requirePublished(reply as number);
}

/** Checks the reply of a script that publishes. @throws LockLostError, NotPublishedError, StagedLostError */
function requirePublished(code: number): void {
  if (code === 1 || code === 2) return;
  if (code === -1) throw new LockLostError();
  if (code === -2) throw new NotPublishedError('Another version went live meanwhile. Run it again.');
  if (code === -3) throw new StagedLostError();
  throw new Error(`A script returned the unknown code ${code}.`);
}

/** Checks the reply of a script, of which -1 says that the lock is not the caller's. @throws LockLostError */
function heldReply(reply: unknown): unknown {
  if (reply === -1) throw new LockLostError();
  return reply;
}

type Argument = string | number | Buffer;

const scripts = ['begin', 'compare', 'conclude', 'locked', 'publish', 'renew', 'replace-key'] as const;
const texts = new Map(
  scripts.map((name) => [name, readFileSync(new URL(`./${name}.lua`, import.meta.url), 'utf8')]),
);

/** Runs a script; how many keys it has differs from call to call. */
function run(
  redis: Redis,
  name: (typeof scripts)[number],
  keys: readonly string[],
  args: readonly Argument[],
): Promise<unknown> {
  const command = `medref:${name}`;
  const client = redis as unknown as Record<string, ((...args: Argument[]) => Promise<unknown>) | undefined>;
  if (!client[command]) redis.defineCommand(command, { lua: texts.get(name) as string });
  return client[command]?.(keys.length, ...keys, ...args) as Promise<unknown>;
}
