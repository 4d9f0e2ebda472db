// The Lua scripts of this folder as typed functions. ioredis sends the text of a script once per connection, then its SHA-1.

import { readFileSync } from 'node:fs';
import type { Redis } from '../redis/connections.ts';
import { type ChangeSetFacts, changeSetText } from './change-sets.ts';
import { type CollectionKeys, type ContentName, changeSetKeys, contentKeys, stagedKeys } from './keys.ts';

/** A collection under a lock. */
export interface Lock {
  readonly keys: CollectionKeys;
  /** The token of the lock. */
  readonly token: string;
}

/** A version in staging under a lock: its keys expire `lifetimeMs` after their last renewal. */
export interface StagingSession extends Lock {
  readonly name: ContentName;
  readonly lifetimeMs: number;
}

/** The caller's lock has expired or was taken over; nothing was written. */
export class LockLostError extends Error {
  constructor() {
    super(
      'The import lost its lock of 30 s, because Redis was unreachable or this process was suspended for longer. Run it again.',
    );
  }
}

/** A staged version that could not be published; readers see nothing of it. */
export class NotPublishedError extends Error {}

/** Redis has lost staged keys, such as the last writes before a crash; another attempt may succeed. */
export class StagedLostError extends NotPublishedError {
  constructor() {
    super('Redis has lost staged keys. Run it again.');
  }
}

/** Begins a version. @param name `''`: takes a new number @returns the name of its staged keys @throws LockLostError */
export async function begin(
  redis: Redis,
  { keys, token }: Lock,
  { name, lifetimeMs }: { name: string; lifetimeMs: number },
): Promise<ContentName> {
  const touched = [keys.lock, keys.staged, keys.next, keys.versions, keys.changeSets];
  const reply = heldReply(await run(redis, 'begin', touched, [token, name, lifetimeMs]));
  return name || String(reply);
}

/** Renews a lock and the lifetime of its staged keys. @throws LockLostError */
export async function renew(
  redis: Redis,
  { keys, token, name, lifetimeMs }: StagingSession,
  lockMs: number,
): Promise<void> {
  const renewed = [keys.lock, keys.staged, ...stagedKeys(keys, name)];
  heldReply(await run(redis, 'renew', renewed, [token, name, lockMs, lifetimeMs]));
}

/** Releases a lock, unless another process holds it. */
export async function release(redis: Redis, { keys, token }: Lock): Promise<void> {
  await run(redis, 'locked', [keys.lock, keys.lock], [token, '["DEL"]']);
}

/** A write command: its name, its key and further arguments. */
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

/** The data to delete when versions are no longer kept. */
export interface Leaving {
  readonly versions: readonly number[];
  /** Contents that no kept version uses. */
  readonly contents: readonly ContentName[];
}

/** Deletes kept versions; data that only they use expires after a grace period. @throws LockLostError */
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

/** A part of a content to compare with another content. */
export interface Comparison {
  readonly keys: readonly [order: string, records: string, otherRecords: string];
  /** Number of the range of the order, from 0. */
  readonly range: number;
  /** How many ids of the range to skip, and how many to compare. */
  readonly from: number;
  readonly count: number;
  /** `alone`: only ids that the other content lacks. */
  readonly only: 'all' | 'alone';
  /** How many records the other content has. */
  readonly otherCount: number;
}

/**
 * Compares some records of two contents.
 * @returns for each id that differs: the id, the SHA-1 of its record in the first content, and in the other or `-`; `null` if part
 *   of a content is missing
 */
export async function compare(
  redis: Redis,
  { keys, range, from, count, only, otherCount }: Comparison,
): Promise<string[] | null> {
  const reply = await run(redis, 'compare', keys, [range, from, count, only, otherCount]);
  return reply === -1 ? null : (reply as string[]);
}

/** The history entry and the rejects of an import. */
export interface Conclusion {
  /** JSON text of the import's report. */
  readonly report: string;
  readonly historyCap: number;
  /** JSON texts: a header, then the rejects; if empty, earlier rejects stay. */
  readonly rejects: readonly string[];
}

/** What happens to the stored validators of upstream. */
export type KeptValidators =
  | { readonly kind: 'keep' | 'delete' }
  | { readonly kind: 'set'; readonly text: string };

/** What happens to the candidate when staged keys are left behind: their version becomes it, or it is deleted. */
export type CandidateEnd =
  | { readonly kind: 'delete' }
  | {
      readonly kind: 'set';
      /** JSON text. */
      readonly text: string;
      /** The name of the candidate that it replaces; `null` for none. */
      readonly replaced: ContentName | null;
      /** How long it is kept, in ms. */
      readonly lifetimeMs: number;
    };

/** The end of an import that published nothing. */
export interface UnpublishedEnd {
  /** The name of the staged keys; `''` for none. */
  readonly name: ContentName | '';
  /** Absent: the candidate stays, and the staged keys are deleted. */
  readonly candidate?: CandidateEnd | undefined;
  /** The time, ISO 8601, at which upstream had the data of the live version; `''` if it had not. */
  readonly checkedAt: string;
  readonly validators: KeptValidators;
}

/** The result of deleting staged keys: they were deleted, or had been published. */
export type Dropped = 'dropped' | 'published';

/**
 * Ends an import that published nothing: deletes its staged keys, or keeps them as the candidate; stores its report and its
 * rejects. May be repeated.
 * An import without the lock, whose token is `''`, only stores its report.
 * @returns `'published'` if the version had been published and only the reply was lost; then nothing is done
 * @throws LockLostError
 */
export async function conclude(
  redis: Redis,
  { keys, token }: Lock,
  { name, checkedAt, validators, candidate }: UnpublishedEnd,
  { rejects, ...entry }: Conclusion,
): Promise<Dropped> {
  const touched = [keys.lock, keys.staged, keys.imports, keys.rejects, keys.checked, keys.validators];
  const staged = name === '' ? [] : stagedKeys(keys, name);
  const isSet = candidate?.kind === 'set';
  const replaced = isSet && candidate.replaced !== null ? stagedKeys(keys, candidate.replaced) : [];
  const stored = validators.kind === 'set' ? validators.text : validators.kind === 'keep' ? 'keep' : '';
  const end = {
    ...{ token, name, checkedAt, validators: stored, ...entry },
    candidate: isSet ? candidate.text : (candidate?.kind ?? ''),
    staying: isSet ? staged.length : 0,
    candidateMs: isSet ? candidate.lifetimeMs : 0,
  };
  const reply = await run(
    redis,
    'conclude',
    [...touched, keys.versions, keys.candidate, ...staged, ...replaced],
    [JSON.stringify(end), ...rejects],
  );
  return heldReply(reply) === 2 ? 'published' : 'dropped';
}

/** Deletes staged keys, unless they had been published. Adds nothing to the history. @throws LockLostError */
export function discard(redis: Redis, lock: Lock, name: ContentName): Promise<Dropped> {
  const end = { name, checkedAt: '', validators: { kind: 'keep' } } as const;
  return conclude(redis, lock, end, { report: '', historyCap: 0, rejects: [] });
}

/** Deletes the staged keys of imports that died; the caller holds the lock. @throws LockLostError */
export async function discardAll(redis: Redis, lock: Lock): Promise<void> {
  for (const name of await redis.smembers(lock.keys.staged)) await discard(redis, lock, name);
}

/** A replacement of a field in the hash of API keys. */
export interface KeyReplacement {
  /** The field: the digest of the key. */
  readonly digest: string;
  /** Its expected value and its new value. */
  readonly from: string;
  readonly to: string;
  /** Further fields, each followed by its value; at least one. */
  readonly also: readonly string[];
}

/** Replaces a field in the hash of API keys; may be repeated. @returns whether it had the expected value */
export async function replaceKey(
  redis: Redis,
  hash: string,
  { digest, from, to, also }: KeyReplacement,
): Promise<boolean> {
  return (await run(redis, 'replace-key', [hash], [digest, from, to, ...also])) === 1;
}

/** The expected size of a key. */
export interface KeySize {
  readonly key: string;
  readonly command: 'HLEN' | 'ZCARD';
  readonly size: number;
}

/** A version to publish, with everything that changes in the same step. */
export interface Publication {
  readonly number: number;
  /** JSON text of the version's document. */
  readonly document: string;
  /** JSON text of the live version's document that the caller has seen; `''` if there was none. */
  readonly expectedLive: string;
  /** Every key of the content with its expected size and the command that measures it. */
  readonly sizes: readonly KeySize[];
  readonly leaving: Leaving & { readonly changeSets: readonly number[] };
  readonly graceMs: number;
  /**
   * The facts of each part's change set, in order; `null` if there is none. They are stored in the change set, to recognize an
   * incomplete one.
   */
  readonly changes: readonly (ChangeSetFacts | null)[];
  /** JSON text of the new pause; `''` ends a pause. */
  readonly pause: string;
  /** Checksums of the content that was rolled back, and of a content that is accepted again; `''` for none. */
  readonly rolledBack: string;
  readonly reinstated: string;
  /** The time, ISO 8601, at which upstream had this data; `''` if it had not. */
  readonly checkedAt: string;
  /** JSON text of the upstream's validators; `''` for none. */
  readonly validators: string;
  /** The name of the candidate; `null` for none. It is published, or else its content is deleted, since it cannot be any more. */
  readonly candidate: ContentName | null;
}

/**
 * Publishes a version in one step. May be repeated after a lost reply.
 * @throws LockLostError; NotPublishedError if another version went live; StagedLostError if the content is incomplete
 */
export async function publish(
  redis: Redis,
  { keys, token }: Lock,
  { sizes, changes, leaving, candidate, ...publication }: Publication,
  { rejects, ...entry }: Conclusion,
): Promise<void> {
  const { number } = publication;
  const isCandidate = candidate === String(number);
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
      ...[keys.next, keys.damaged, keys.candidate],
      ...[...sizes.map(({ key }) => key), ...changeSetKeys(keys, number)],
      ...leaving.contents.flatMap((content) => contentKeys(keys, content)),
      ...leaving.changeSets.flatMap((version) => changeSetKeys(keys, version)),
      ...(candidate === null || isCandidate ? [] : stagedKeys(keys, candidate)),
    ],
    [
      JSON.stringify({
        ...{ token, ...publication, ...entry, leaving, isCandidate, channel: keys.announcements },
        sizes: sizes.map(({ command, size }) => [command, size]),
        changes: changes.map((facts) => (facts ? [facts.size, changeSetText(facts)] : [-1, ''])),
      }),
      ...rejects,
    ],
  );
  requirePublished(reply as number);
}

/** Checks the reply of a publishing script. @throws LockLostError, NotPublishedError, StagedLostError */
function requirePublished(code: number): void {
  if (code === 1 || code === 2) return;
  if (code === -1) throw new LockLostError();
  if (code === -2) throw new NotPublishedError('Another version went live meanwhile. Run it again.');
  if (code === -3) throw new StagedLostError();
  throw new Error(`A script returned the unknown code ${code}.`);
}

/** Checks the reply of a script; -1 means that the caller has lost the lock. @throws LockLostError */
function heldReply(reply: unknown): unknown {
  if (reply === -1) throw new LockLostError();
  return reply;
}

type Argument = string | number | Buffer;

const scripts = ['begin', 'compare', 'conclude', 'locked', 'publish', 'renew', 'replace-key'] as const;
const texts = new Map(
  scripts.map((name) => [name, readFileSync(new URL(`./${name}.lua`, import.meta.url), 'utf8')]),
);

/** Runs a script with a variable number of keys. */
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
