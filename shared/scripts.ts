// The Lua scripts of scripts/, each behind a typed function that turns its reply code into a named outcome.

import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import type { Redis } from 'ioredis';
import type { CollectionKeys } from './keys.ts';

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

/** One record on its way into a staged version. */
export interface StagedRecord {
  /** Position upstream, from 1. */
  readonly position: number;
  readonly id: number;
  readonly json: string;
}

/** What became of a batch; duplicates are `[index in the batch, position of the first record with that id]`. */
export interface StagedBatch {
  readonly added: number;
  readonly changed: number;
  readonly duplicates: readonly (readonly [index: number, firstPosition: number])[];
}

interface Held {
  readonly keys: CollectionKeys;
  readonly token: string;
}

/** Writes a batch into the staged content `number`, comparing with the content `liveContent` (0: none). @throws LockLostError */
export async function stage(
  redis: Redis,
  {
    keys,
    token,
    number,
    liveContent,
    records,
    lifetimeMs,
  }: Held & {
    readonly number: number;
    readonly liveContent: number;
    readonly records: readonly StagedRecord[];
    readonly lifetimeMs: number;
  },
): Promise<StagedBatch> {
  const { order, records: staged } = keys.content(number);
  const reply = await run(
    redis,
    scripts.stage,
    [keys.lock, keys.staged, order, staged, keys.content(liveContent).records],
    [token, number, lifetimeMs, ...records.flatMap(({ position, id, json }) => [position, id, json])],
  );
  if (reply === -1) throw new LockLostError();
  const [added, changed, flat] = reply as [number, number, number[]];
  const duplicates: [number, number][] = [];
  for (let i = 0; i < flat.length; i += 2) duplicates.push([(flat[i] as number) - 1, flat[i + 1] as number]);
  return { added, changed, duplicates };
}

/** Renews a lock and the lifetime of what was staged under it. @throws LockLostError */
export async function renew(
  redis: Redis,
  { keys, token, number, lockMs, lifetimeMs }: Held & { number: number; lockMs: number; lifetimeMs: number },
): Promise<void> {
  const reply = await run(
    redis,
    scripts.renew,
    [keys.lock, ...stagedKeys(keys, number)],
    [token, lockMs, lifetimeMs],
  );
  if (reply === -1) throw new LockLostError();
}

/** Gives a lock back; one that is not the caller's any more is left alone. */
export async function release(redis: Redis, { keys, token }: Held): Promise<void> {
  await run(redis, scripts.release, [keys.lock], [token]);
}

/** What publish.lua needs besides the lock. */
export interface Publication {
  readonly number: number;
  /** JSON text of the version's document. */
  readonly document: string;
  /** JSON text of the live version's document that the import compared itself with; `''` when there was none. */
  readonly expectedLive: string;
  readonly totalCount: number;
  /** Versions that leave the kept ones, and contents that no kept version holds any more. */
  readonly leaving: { readonly versions: readonly number[]; readonly contents: readonly number[] };
  readonly graceMs: number;
}

/** The history entry and the rejects with which an import ends. */
export interface Conclusion {
  /** JSON text of the import's report. */
  readonly report: string;
  readonly historyCap: number;
  /** JSON texts: a header, then the rejects. */
  readonly rejects: readonly string[];
}

/**
 * Publishes a staged version in one step; may be repeated when a reply was lost.
 * @throws LockLostError; NotPublishedError when another version went live or staged keys are not whole
 */
export async function publish(
  redis: Redis,
  { keys, token, publication, conclusion }: Held & { publication: Publication; conclusion: Conclusion },
): Promise<void> {
  const { number, document, expectedLive, totalCount, leaving, graceMs } = publication;
  const { order, records } = keys.content(number);
  const reply = await run(
    redis,
    scripts.publish,
    [
      ...[
        keys.lock,
        keys.live,
        keys.versions,
        keys.versionDocuments,
        keys.staged,
        keys.imports,
        keys.rejects,
      ],
      ...[order, records],
      ...leaving.contents.flatMap((content) => stagedKeys(keys, content)),
    ],
    [
      ...[token, expectedLive, number, document, totalCount, graceMs, keys.announcements],
      ...[conclusion.report, conclusion.historyCap],
      ...[leaving.versions.length, ...leaving.versions, ...conclusion.rejects],
    ],
  );
  requirePublished(reply as number);
}

/** Ends an import that published nothing: drops what it staged, keeps its report and its rejects. @throws LockLostError */
export async function conclude(
  redis: Redis,
  { keys, token, number, conclusion }: Held & { number: number; conclusion: Conclusion },
): Promise<void> {
  const reply = await run(
    redis,
    scripts.conclude,
    [keys.lock, keys.staged, keys.imports, keys.rejects, ...stagedKeys(keys, number)],
    [token, number, conclusion.report, conclusion.historyCap, ...conclusion.rejects],
  );
  if (reply === -1) throw new LockLostError();
}

function requirePublished(code: number): void {
  if (code === 1 || code === 2) return;
  if (code === -1) throw new LockLostError();
  if (code === -2) throw new NotPublishedError('Another version went live during the import. Run it again.');
  if (code === -3)
    throw new NotPublishedError('Redis has lost keys of the staged version. Run the import again.');
  throw new Error(`publish.lua gave the unknown code ${code}.`);
}

function stagedKeys(keys: CollectionKeys, number: number): string[] {
  const { order, records } = keys.content(number);
  return [order, records];
}

interface Script {
  readonly text: string;
  readonly sha: string;
}

const scripts = {
  stage: load('stage'),
  renew: load('renew'),
  release: load('release'),
  publish: load('publish'),
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
  args: (string | number)[],
): Promise<unknown> {
  try {
    return await redis.evalsha(script.sha, keys.length, ...keys, ...args);
  } catch (error) {
    if (!(error as Error).message.startsWith('NOSCRIPT')) throw error;
    return redis.eval(script.text, keys.length, ...keys, ...args);
  }
}
