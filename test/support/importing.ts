// Real imports for tests, from a real HTTP upstream into a real Redis.

import { pino } from 'pino';
import { type ImportOptions, importCollection } from '../../importer/import.ts';
import type { ImportResult } from '../../importer/report.ts';
import type { Collection } from '../../shared/collections/define.ts';
import { connectForWriting } from '../../shared/redis/connections.ts';
import { oneServer } from './one-server.ts';
import { asUser } from './redis-users.ts';
import { startUpstreamServer } from './upstream-server.ts';

/**
 * A number that the clock never reaches. If Redis assigned it last, each next number is one higher, and no publication waits
 * for the second of its number to end.
 */
export const aheadOfClock = 99991231000000;

/** Options that differ from those of the usual import. */
export type ImportChanges = Partial<Omit<ImportOptions, 'redis'>> & {
  /** How long the connection to Redis may be silent, in ms. */
  readonly silenceMs?: number | undefined;
  /** How long an import waits for a reply of Redis, in ms. */
  readonly replyMs?: number;
};

/** Imports from a URL, over a separate connection to Redis. */
export async function importFrom(
  from: URL,
  collection: Collection,
  { redisUrl, silenceMs, replyMs, ...changes }: ImportChanges & { redisUrl: string },
): Promise<ImportResult> {
  // The users may use only the usual prefix.
  const url = changes.keyPrefix === undefined ? asUser(redisUrl, 'importer') : redisUrl;
  const redis = await connectForWriting(url, { silenceMs });
  if (replyMs !== undefined) oneServer(redis).options.commandTimeout = replyMs;
  try {
    return await importCollection(collection, {
      redis,
      keyPrefix: 'medref',
      upstream: { url: from, token: undefined },
      maxShrinkPercent: 20,
      maxRejectPercent: 1,
      maxChangePercent: 50,
      keepVersions: 3,
      publish: 'auto',
      force: false,
      dryRun: false,
      scheduled: false,
      logger: pino({ level: 'silent' }),
      maxNumberWaitMs: 0,
      ...changes,
    });
  } finally {
    redis.disconnect();
  }
}

/** Imports records from an upstream that serves them as `{"data": […]}`. */
export async function importRecords(
  records: readonly unknown[],
  collection: Collection,
  options: ImportChanges & { redisUrl: string },
): Promise<ImportResult> {
  return importText(JSON.stringify({ data: records }), collection, options);
}

/** Imports from an upstream that serves exactly this text. */
export async function importText(
  text: string,
  collection: Collection,
  options: ImportChanges & { redisUrl: string },
): Promise<ImportResult> {
  const upstream = await startUpstreamServer((response) => {
    response.setHeader('content-type', 'application/json').end(text);
  });
  try {
    return await importFrom(upstream.url(), collection, options);
  } finally {
    await upstream.close();
  }
}
