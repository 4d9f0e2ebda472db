// medref status: what is live, how old it is, how the last imports ended, who imports now.

import { settingWarnings } from '../../config/setting-warnings.ts';
import { type HistoryEntry, readHistory } from '../../importer/job/import-history.ts';
import { type LockHolder, readLockHolder } from '../../importer/job/import-lock.ts';
import { type Hold, readHold } from '../../importer/publishing/hold.ts';
import { datedAheadWarning } from '../../importer/publishing/live-content.ts';
import type { ServedCollection } from '../../shared/collections/collection.ts';
import { servedCollections } from '../../shared/collections/collections.ts';
import { servedKeys } from '../../shared/keys.ts';
import type { Redis } from '../../shared/redis/connections.ts';
import { readLiveVersion, type Version, versionOf } from '../../shared/versions.ts';
import { exitCodes } from '../exit-codes.ts';
import type { CommandContext } from '../surroundings.ts';
import { importText } from './import-text.ts';
import { counted, type OutputOptions, print } from './output.ts';
import { withRedis } from './with-redis.ts';

const lastImports = 5;

interface CollectionStatus {
  readonly collection: string;
  /** The collection whose imports these are; `null`: its own. */
  readonly derivedFrom: string | null;
  readonly live: (Omit<Version, 'profile' | 'derived'> & { readonly ageSeconds: number }) | null;
  /** When upstream was last found to be as the live version, or was made so. */
  readonly checkedAt: string | null;
  /** Latest first. */
  readonly lastImports: readonly HistoryEntry[];
  readonly lock: LockHolder | null;
  readonly hold: Hold | null;
  /** What an operator should look at, as sentences. */
  readonly warnings: readonly string[];
}

/** Prints the state of every collection, and what is odd about the settings. @returns the exit code */
export async function statusCommand(context: CommandContext, options: OutputOptions): Promise<number> {
  const warnings = settingWarnings(context.settings);
  const collections = await withRedis(context.settings, (redis) =>
    Promise.all(servedCollections.map((served) => readStatus(redis, context.settings.keyPrefix, served))),
  );
  print(context, { warnings, collections }, options, () =>
    [...warnings.map((warning) => `warning: ${warning}`), ...collections.map(describeStatus)].join('\n\n'),
  );
  return exitCodes.done;
}

async function readStatus(
  redis: Redis,
  keyPrefix: string,
  served: ServedCollection,
): Promise<CollectionStatus> {
  const { keys } = servedKeys(keyPrefix, served);
  const [found, checkedAt, history, lock, hold] = await Promise.all([
    readLiveVersion(redis, keys),
    redis.get(keys.checked),
    readHistory(redis, keys, lastImports),
    readLockHolder(redis, keys),
    readHold(redis, keys),
  ]);
  const live = found && versionOf(served, found);
  return {
    collection: served.collection.name,
    derivedFrom: served.collection === served.source ? null : served.source.name,
    ...{ live: live && withAge(live), checkedAt, lastImports: history, lock, hold },
    warnings: live ? datedAheadWarning(live) : [],
  };
}

function withAge({ document, profile, derived, ...version }: Version & { document: string }) {
  return {
    ...version,
    ageSeconds: Math.max(0, Math.round((Date.now() - Date.parse(version.publishedAt)) / 1000)),
  };
}

function describeStatus(status: CollectionStatus): string {
  const { collection, derivedFrom, live, checkedAt, lastImports, lock, hold, warnings } = status;
  const lines = [
    live
      ? `${collection}: version ${live.version} is live since ${live.publishedAt} (${ageText(live.ageSeconds)}), ${counted(live.totalCount, 'record')}${live.forced ? ', forced' : ''}`
      : `${collection}: nothing is live`,
  ];
  if (derivedFrom) return [...lines, `  comes and goes with ${derivedFrom}`].join('\n');
  for (const warning of warnings) lines.push(`  warning: ${warning}`);
  if (checkedAt) lines.push(`  as upstream was at ${checkedAt}`);
  if (hold)
    lines.push(
      `  scheduled imports are held since ${hold.since}, after a rollback to version ${hold.version}`,
    );
  if (lock) lines.push(`  ${lock.holder} imports since ${lock.since}`);
  for (const entry of lastImports) {
    const forced = entry.forced ? ' (forced)' : '';
    lines.push(`  ${entry.endedAt} ${importText(entry).split('\n')[0]}${forced}`);
  }
  if (lastImports.length === 0) lines.push('  no imports yet');
  return lines.join('\n');
}

/** An age in its two largest units. */
function ageText(seconds: number): string {
  const units = [
    [Math.floor(seconds / 86_400), 'd'],
    [Math.floor(seconds / 3_600) % 24, 'h'],
    [Math.floor(seconds / 60) % 60, 'min'],
    [seconds % 60, 's'],
  ] as const;
  const first = units.findIndex(([value]) => value > 0);
  if (first === -1) return 'now';
  return `${units
    .slice(first, first + 2)
    .map(([value, unit]) => `${value} ${unit}`)
    .join(' ')} ago`;
}
