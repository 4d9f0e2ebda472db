// Publishes a version: assigns a date and a document, removes old versions, and moves the live pointer.

import { setTimeout as sleep } from 'node:timers/promises';
import { readCandidate } from '../shared/candidates.ts';
import { type Redis, sendToServerOf } from '../shared/redis/connections.ts';
import type { ChangeSetFacts } from '../shared/store/change-sets.ts';
import { sizesOf } from '../shared/store/completeness.ts';
import type { Pause } from '../shared/store/import-locks.ts';
import { type Conclusion, type Leaving, type Lock, publish, retain } from '../shared/store/scripts.ts';
import { documentOf, type LiveVersion, readKeptVersions, type Version } from '../shared/store/versions.ts';
import { isInFuture } from '../shared/time.ts';

/** How long a content stays readable after its version is no longer kept, in ms: longer than the longest request. */
export const graceMs = 60_000;

/** For how many versions change sets are kept: `since` may be this many versions old. */
const keptChangeSets = 100;

/** How many version numbers are kept at most, besides the last one of each content: rollbacks add numbers without a content. */
export const namedVersions = 100;

/** How long a publication waits at most, in ms: later numbers come from a wrong clock. */
export const maxNumberWaitMs = 10_000;

/** A version to publish. */
export interface NextVersion extends Omit<Version, 'version' | 'publishedAt'> {
  readonly number: number;
  /** The current live version. */
  readonly live: LiveVersion | null;
  /**
   * The change set of each part against the live version; `null` if they could not be compared. Then `since` cannot be an
   * earlier version.
   */
  readonly changeSets: readonly (ChangeSetFacts | null)[];
  /** How many contents are kept, including the new version's. */
  readonly keepVersions: number;
  /** The damaged content that the version replaces; its versions are no longer kept. */
  readonly damaged?: string | undefined;
  /** The pause that a rollback sets; `null` ends it. */
  readonly pause: Pause | null;
  /** Checksum of the content that was rolled back. */
  readonly rolledBack: string | null;
  /** JSON text of the upstream's validators. */
  readonly validators: string | null;
  /** When upstream had this data, ISO 8601; now by default. */
  readonly checkedAt?: string;
  /** The longest wait for the second of the version's number to end. */
  readonly maxNumberWaitMs: number;
}

/**
 * Makes a version live, under a lock.
 * @throws LockLostError; NotPublishedError if another version went live; StagedLostError if the content is incomplete
 */
export async function publishVersion(
  redis: Redis,
  lock: Lock,
  next: NextVersion,
  conclusion: Conclusion,
): Promise<void> {
  const { number, content, live, checksum } = next;
  await untilPast(redis, lock.keys.live, { number, maxMs: next.maxNumberWaitMs });
  const now = new Date();
  const [kept, candidate] = await Promise.all([
    readKeptVersions(redis, lock.keys),
    readCandidate(redis, lock.keys),
  ]);
  const version: Version = {
    version: number,
    content,
    format: next.format,
    publishedAt: publicationTime(now, live, kept).toISOString(),
    totalCount: next.totalCount,
    checksum,
    setDigest: next.setDigest,
    linesLength: next.linesLength,
    blocks: next.blocks,
    searches: next.searches,
    forced: next.forced,
    profile: next.profile,
    derived: next.derived,
  };
  const lastToGo = next.changeSets[0] === null ? -1 : -keptChangeSets - 1;
  const changeSets = await redis.zrange(lock.keys.changeSets, 0, String(lastToGo));
  await publish(
    redis,
    lock,
    {
      number,
      graceMs,
      sizes: sizesOf(lock.keys, version),
      document: documentOf(version),
      changes: next.changeSets,
      expectedLive: live?.document ?? '',
      leaving: { ...leavingVersions(kept, next.keepVersions, next), changeSets: changeSets.map(Number) },
      pause: next.pause ? JSON.stringify(next.pause) : '',
      rolledBack: next.rolledBack ?? '',
      reinstated: checksum,
      checkedAt: next.pause ? '' : (next.checkedAt ?? now.toISOString()),
      validators: next.validators ?? '',
      candidate: candidate && String(candidate.version.version),
    },
    conclusion,
  );
}

/** Deletes the contents that were live longest ago, if more are kept than wanted. @throws LockLostError */
export async function retainVersions(redis: Redis, lock: Lock, keepVersions: number): Promise<void> {
  const kept = await readKeptVersions(redis, lock.keys);
  const leaving = leavingVersions(kept.slice(0, -1), keepVersions, { content: kept.at(-1)?.content ?? '' });
  if (leaving.versions.length > 0) await retain(redis, lock, leaving, graceMs);
}

/**
 * Returns the versions and contents to delete at a publication. The limit counts contents, not version numbers: the contents
 * that were live last stay, so a rollback deletes no other content. A version stays as long as its content.
 * @param kept versions kept so far, oldest first
 * @param keep how many contents may stay, including the new version's
 * @param next the content of the new version, and a damaged content that it replaces
 */
export function leavingVersions(
  kept: readonly Version[],
  keep: number,
  { content, damaged }: Pick<NextVersion, 'content' | 'damaged'>,
): Leaving {
  const lastOf = new Map(kept.map((version) => [version.content, version.version]));
  const others = [...lastOf.keys()].filter((other) => other !== content);
  const byLastLive = others.sort((a, b) => (lastOf.get(b) as number) - (lastOf.get(a) as number));
  const staying = new Set([content, ...byLastLive.filter((it) => it !== damaged).slice(0, keep - 1)]);
  const firstNamed = Math.max(0, kept.length - (namedVersions - 1));
  const stays = (version: Version, n: number) =>
    staying.has(version.content) &&
    (n >= firstNamed || (version.content !== content && lastOf.get(version.content) === version.version));
  return {
    versions: kept.filter((version, n) => !stays(version, n)).map(({ version }) => version),
    contents: others.filter((other) => !staying.has(other)),
  };
}

type Dated = Pick<Version, 'publishedAt'>;

/**
 * Returns the date of a version that is published now. Kept versions of a collection never share a second, since HTTP dates
 * (`Last-Modified`) have no fractions. Dates increase, unless a wrong clock set the live one: then they continue from now.
 * @param kept versions kept so far
 */
export function publicationTime(now: Date, live: Dated | null, kept: readonly Dated[]): Date {
  const taken = new Set([...kept, ...(live ? [live] : [])].map(({ publishedAt }) => secondOf(publishedAt)));
  const grows = live !== null && !isInFuture(live, now);
  let second = Math.max(secondOf(now), grows ? secondOf(live.publishedAt) + 1 : 0);
  while (taken.has(second)) second += 1;
  return second === secondOf(now) ? now : new Date(second * 1000);
}

function secondOf(time: Date | string): number {
  return Math.floor(new Date(time).getTime() / 1000);
}

/**
 * Waits until the second of a version's number is over, by the clock of the Redis that has a key. Even a Redis that has
 * forgotten the version then never assigns its number again.
 * @param maxMs does not wait if that would take longer
 */
export async function untilPast(
  redis: Redis,
  key: string,
  { number, maxMs }: { readonly number: number; readonly maxMs: number },
): Promise<void> {
  if (maxMs === 0) return;
  const [seconds, microseconds] = (await sendToServerOf(redis, key, ['TIME'])) as [string, string];
  const now = Number(seconds) * 1000 + Number(microseconds) / 1000;
  const wait = timeOf(number) + 1000 - now;
  if (wait > 0 && wait <= maxMs) await sleep(Math.ceil(wait) + 1); // A timer may fire a millisecond early.
}

/** Returns the time at which the second of a number begins, in ms since 1970. */
export function timeOf(number: number): number {
  const [, ...parts] = /^(\d{4,})(\d\d)(\d\d)(\d\d)(\d\d)(\d\d)$/.exec(String(number)) ?? [];
  const [year = 0, month = 0, day = 0, hour = 0, minute = 0, second = 0] = parts.map(Number);
  return Date.UTC(year, month - 1, day, hour, minute, second);
}
