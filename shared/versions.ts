// The life of a version: its number, its document, what is live, what is kept, what is swept away.

import type { CollectionKeys } from './keys.ts';
import type { Redis } from './redis.ts';

/** What is known of a published version; its JSON text is stored as it is, with the live pointer and among the kept. */
export interface Version {
  readonly version: number;
  /** Number of the content it holds: its own, unless it is a rollback. */
  readonly content: number;
  /** When it became live, ISO 8601. */
  readonly publishedAt: string;
  readonly totalCount: number;
  /** SHA-256 of the valid records in order, hexadecimal. */
  readonly checksum: string;
  /** Whether it was published past its checks. */
  readonly forced: boolean;
}

/** The live version with the exact text of its document, by which a publication tells whether it has moved. */
export interface LiveVersion extends Version {
  readonly document: string;
}

/** The live version of a collection, or `null` when nothing was published yet. */
export async function readLiveVersion(redis: Redis, keys: CollectionKeys): Promise<LiveVersion | null> {
  const document = await redis.get(keys.live);
  return document === null ? null : { ...(JSON.parse(document) as Version), document };
}

/** The kept versions of a collection, oldest first. */
export async function readKeptVersions(redis: Redis, keys: CollectionKeys): Promise<Version[]> {
  const documents = await redis.hvals(keys.versionDocuments);
  return documents.map((text) => JSON.parse(text) as Version).sort((a, b) => a.version - b.version);
}

/** Takes the next version number of a collection; numbers only grow and are never given twice. */
export async function nextNumber(redis: Redis, keys: CollectionKeys): Promise<number> {
  return redis.incr(keys.next);
}

/**
 * What leaves when one more version is published.
 * @param kept versions kept so far
 * @param keep how many may be kept, the new one among them
 * @returns the versions that leave, and the contents that only they hold
 */
export function leavingVersions(
  kept: readonly Version[],
  keep: number,
): { versions: readonly number[]; contents: readonly number[] } {
  const leaving = kept.slice(0, Math.max(0, kept.length - (keep - 1)));
  const staying = new Set(kept.slice(leaving.length).map(({ content }) => content));
  const contents = new Set(leaving.map(({ content }) => content).filter((content) => !staying.has(content)));
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

/** Unlinks what imports that died have staged. The caller holds the lock, so whatever is staged is dead. */
export async function sweepStaged(redis: Redis, keys: CollectionKeys): Promise<number> {
  const numbers = await redis.smembers(keys.staged);
  for (const number of numbers) {
    const { order, records } = keys.content(Number(number));
    await redis.multi().unlink(order, records).srem(keys.staged, number).exec();
  }
  return numbers.length;
}
