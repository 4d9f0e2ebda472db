// medref status: what is live, how old it is, how the last imports ended, who imports now.

import type { Settings } from '../../config/settings.ts';
import { type HistoryEntry, readHistory } from '../../importer/import-history.ts';
import { type LockHolder, readLockHolder } from '../../importer/import-lock.ts';
import { collections } from '../../shared/collections/collections.ts';
import { collectionKeys } from '../../shared/keys.ts';
import { connectForWriting, type Redis } from '../../shared/redis.ts';
import { readLiveVersion, type Version } from '../../shared/versions.ts';
import { exitCodes } from '../exit-codes.ts';
import { describe } from './import.ts';
import { count, type OutputOptions, print } from './output.ts';

const lastImports = 5;

interface CollectionStatus {
  readonly collection: string;
  readonly live: (Version & { readonly ageSeconds: number }) | null;
  /** Latest first. */
  readonly lastImports: readonly HistoryEntry[];
  readonly lock: LockHolder | null;
}

/** Prints the state of every collection. @returns the exit code */
export async function statusCommand(settings: Settings, options: OutputOptions): Promise<number> {
  const redis = await connectForWriting(settings.redisUrl);
  try {
    const states = await Promise.all(
      collections.map(({ name }) => readStatus(redis, settings.keyPrefix, name)),
    );
    print({ collections: states }, options, () => states.map(describeStatus).join('\n\n'));
    return exitCodes.done;
  } finally {
    redis.disconnect();
  }
}

async function readStatus(redis: Redis, keyPrefix: string, collection: string): Promise<CollectionStatus> {
  const keys = collectionKeys(keyPrefix, collection);
  const [found, history, lock] = await Promise.all([
    readLiveVersion(redis, keys),
    readHistory(redis, keys, lastImports),
    readLockHolder(redis, keys),
  ]);
  return { collection, live: found && withAge(found), lastImports: history, lock };
}

function withAge({ document, ...version }: Version & { document: string }) {
  return {
    ...version,
    ageSeconds: Math.max(0, Math.round((Date.now() - Date.parse(version.publishedAt)) / 1000)),
  };
}

function describeStatus({ collection, live, lastImports, lock }: CollectionStatus): string {
  const lines = [
    live
      ? `${collection}: version ${live.version} is live since ${live.publishedAt}, ${count(live.totalCount)} records`
      : `${collection}: nothing is live`,
  ];
  if (lock) lines.push(`  ${lock.holder} imports since ${lock.since}`);
  for (const entry of lastImports) lines.push(`  ${entry.endedAt} ${describe(entry).split('\n')[0]}`);
  if (lastImports.length === 0) lines.push('  no imports yet');
  return lines.join('\n');
}
