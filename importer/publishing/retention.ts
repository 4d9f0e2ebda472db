// Which versions stay when one more is published, and which contents and change sets leave with the others.

import type { Redis } from '../../shared/redis/connections.ts';
import { readKeptVersions, type Version } from '../../shared/versions.ts';
import type { Held } from '../scripts/held.ts';
import { retain } from '../scripts/retain.ts';

/** How long a content that is not kept any more can still be read, in ms: longer than the longest request. */
export const graceMs = 60_000;

/** Of how many versions the change sets are kept, and so from how far back changes can be asked for. */
export const keptChangeSets = 100;

/** Lets go of the oldest kept versions where more are kept than wanted. @throws LockLostError */
export async function retainVersions(redis: Redis, held: Held, keepVersions: number): Promise<void> {
  const kept = await readKeptVersions(redis, held.keys);
  const leaving = leavingVersions(kept.slice(0, -1), keepVersions, kept.at(-1)?.content ?? 0);
  if (leaving.versions.length > 0) await retain(redis, held, leaving, graceMs);
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
