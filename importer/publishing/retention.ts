// Which versions stay when one more is published, and which contents and change sets leave with the others.

import type { Redis } from '../../shared/redis/connections.ts';
import type { ContentName } from '../../shared/store/keys.ts';
import type { Held } from '../../shared/store/scripts.ts';
import { retain } from '../../shared/store/scripts.ts';
import { readKeptVersions, type Version } from '../../shared/store/versions.ts';

/** How long a content that is not kept any more can still be read, in ms: longer than the longest request. */
export const graceMs = 60_000;

/** Of how many versions the change sets are kept, and so from how far back changes can be asked for. */
export const keptChangeSets = 100;

/** How many versions stay named at most, but for the last one of each content: rollbacks make more without a content more. */
export const namedVersions = 100;

/** Lets go of what was not live for the longest time, where more is kept than wanted. @throws LockLostError */
export async function retainVersions(redis: Redis, held: Held, keepVersions: number): Promise<void> {
  const kept = await readKeptVersions(redis, held.keys);
  const leaving = leavingVersions(kept.slice(0, -1), keepVersions, kept.at(-1)?.content ?? 0);
  if (leaving.versions.length > 0) await retain(redis, held, leaving, graceMs);
}

/**
 * What leaves when one more version is published. Contents are counted, not numbers: those stay that were live last, so
 * that a rollback lets no other content go. A version stays with its content.
 * @param kept versions kept so far, oldest first
 * @param keep how many contents may be kept, that of the new version among them
 * @param content the content of the new version
 * @returns the versions that leave, and what the contents that only they hold are stored under
 */
export function leavingVersions(
  kept: readonly Version[],
  keep: number,
  content: number,
): { versions: readonly number[]; contents: readonly ContentName[] } {
  const storedOf = new Map(kept.map((version) => [version.content, version.stored]));
  const lastOf = new Map(kept.map((version) => [version.content, version.version]));
  const others = [...lastOf.keys()].filter((other) => other !== content);
  const byLastLive = others.sort((a, b) => (lastOf.get(b) as number) - (lastOf.get(a) as number));
  const staying = new Set([content, ...byLastLive.slice(0, keep - 1)]);
  const firstNamed = Math.max(0, kept.length - (namedVersions - 1));
  const stays = (version: Version, n: number) =>
    staying.has(version.content) &&
    (n >= firstNamed || (version.content !== content && lastOf.get(version.content) === version.version));
  return {
    versions: kept.filter((version, n) => !stays(version, n)).map(({ version }) => version),
    contents: others
      .filter((other) => !staying.has(other))
      .map((other) => storedOf.get(other) as ContentName),
  };
}
