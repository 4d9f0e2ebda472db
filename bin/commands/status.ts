// medref status: what is live, how old it is, how the last imports ended, who imports now.

import type { Settings } from '../../config/settings.ts';
import { type HistoryEntry, readHistory } from '../../importer/import-history.ts';
import { type LockHolder, readLockHolder } from '../../importer/import-lock.ts';
import { collections } from '../../shared/collections/collections.ts';
import { collectionKeys } from '../../shared/keys.ts';
import type { Redis } from '../../shared/redis.ts';
import { type Hold, readHold, readLiveVersion, type Version } from '../../shared/versions.ts';
import { exitCodes } from '../exit-codes.ts';
import { describe } from './import.ts';
import { count, type OutputOptions, print } from './output.ts';
import { withRedis } from './with-redis.ts';

const lastImports = 5;

interface CollectionStatus {
  readonly collection: string;
  readonly live: (Omit<Version, 'profile'> & { readonly ageSeconds: number }) | null;
  /** When upstream was last found to be as the live version, or was made so. */
  readonly checkedAt: string | null;
  /** Latest first. */
  readonly lastImports: readonly HistoryEntry[];
  readonly lock: LockHolder | null;
  readonly hold: Hold | null;
}

/** Prints the state of every collection. @returns the exit code */
export async function statusCommand(settings: Settings, options: OutputOptions): Promise<number> {
  const states = await withRedis(settings, (redis) =>
    Promise.all(collections.map(({ name }) => readStatus(redis, settings.keyPrefix, name))),
  );
  print({ collections: states }, options, () => states.map(describeStatus).join('\n\n'));
  return exitCodes.done;
}

async function readStatus(redis: Redis, keyPrefix: string, collection: string): Promise<CollectionStatus> {
  const keys = collectionKeys(keyPrefix, collection);
  const [found, checkedAt, history, lock, hold] = await Promise.all([
    readLiveVersion(redis, keys),
    redis.get(keys.checked),
    readHistory(redis, keys, lastImports),
    readLockHolder(redis, keys),
    readHold(redis, keys),
  ]);
  return { collection, live: found && withAge(found), checkedAt, lastImports: history, lock, hold };
}

function withAge({ document, profile, ...version }: Version & { document: string }) {
  return {
    ...version,
    ageSeconds: Math.max(0, Math.round((Date.now() - Date.parse(version.publishedAt)) / 1000)),
  };
}

function describeStatus({ collection, live, checkedAt, lastImports, lock, hold }: CollectionStatus): string {
  const lines = [
    live
      ? `${collection}: version ${live.version} is live since ${live.publishedAt}, ${count(live.totalCount)} records`
      : `${collection}: nothing is live`,
  ];
  if (checkedAt) lines.push(`  as upstream was at ${checkedAt}`);
  if (hold)
    lines.push(
      `  scheduled imports are held since ${hold.since}, after a rollback to version ${hold.version}`,
    );
  if (lock) lines.push(`  ${lock.holder} imports since ${lock.since}`);
  for (const entry of lastImports) lines.push(`  ${entry.endedAt} ${describe(entry).split('\n')[0]}`);
  if (lastImports.length === 0) lines.push('  no imports yet');
  return lines.join('\n');
}
