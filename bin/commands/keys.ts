// medref keys: API keys, from their making to their end.

import type { Settings } from '../../config/settings.ts';
import { createApiKey, listApiKeys, revokeApiKey } from '../../shared/api-keys.ts';
import { exitCodes } from '../exit-codes.ts';
import { type OutputOptions, print, table } from './output.ts';
import { withRedis } from './with-redis.ts';

/** Makes a key and prints it, this once. @returns the exit code */
export async function createKey(
  settings: Settings,
  options: OutputOptions & { client: string; expires?: Date; rate?: string },
): Promise<number> {
  return withRedis(settings, async (redis) => {
    const { client, expires, rate } = options;
    const made = await createApiKey(redis, settings.keyPrefix, {
      client,
      expiresAt: expires ?? null,
      rate: rate ?? null,
    });
    const { id, key, expiresAt } = made;
    print({ id, client, key, expiresAt, rate: made.rate }, options, () =>
      [
        `Key ${id} for ${client}${expiresAt ? `, expires ${expiresAt}` : ''}. It is shown this once:`,
        key,
      ].join('\n'),
    );
    return exitCodes.done;
  });
}

/** Prints what is known of all keys. @returns the exit code */
export async function listKeys(settings: Settings, options: OutputOptions): Promise<number> {
  return withRedis(settings, async (redis) => {
    const keys = await listApiKeys(redis, settings.keyPrefix);
    print({ keys }, options, () =>
      table(
        ['id', 'client', 'created', 'expires', 'rate', 'last used'],
        keys.map((key) => [
          ...[key.id, key.client, key.createdAt],
          ...[key.expiresAt ?? 'never', key.rate ?? 'no limit', key.lastUsedAt ?? 'never'],
        ]),
      ),
    );
    return exitCodes.done;
  });
}

/** Revokes a key. @returns the exit code */
export async function revokeKey(settings: Settings, id: string, options: OutputOptions): Promise<number> {
  return withRedis(settings, async (redis) => {
    const revoked = await revokeApiKey(redis, settings.keyPrefix, id);
    if (!revoked)
      throw new Error(`There is no key with the id ${JSON.stringify(id)}; "medref keys list" shows all.`);
    print({ id, client: revoked.client }, options, () => `Key ${id} of ${revoked.client} is revoked.`);
    return exitCodes.done;
  });
}

const isoDate = /^\d{4}-\d{2}-\d{2}(?:T\d{2}:\d{2}(?::\d{2}(?:\.\d+)?)?(?:Z|[+-]\d{2}:\d{2}))?$/;

/** A time in the future, ISO 8601: a date (midnight UTC), or date and time with its zone. */
export function parseExpiry(text: string): Date {
  const time = isoDate.test(text) ? new Date(text) : new Date(Number.NaN);
  if (Number.isNaN(time.getTime()) || !isDay(text.slice(0, 10)))
    throw new Error('It takes an ISO 8601 time, such as 2027-01-31T00:00:00Z.');
  if (time.getTime() <= Date.now()) throw new Error('It lies in the past.');
  return time;
}

/** Whether a date is in the calendar; JavaScript takes 30 February for 2 March. */
function isDay(date: string): boolean {
  return new Date(`${date}T00:00:00Z`).toISOString().startsWith(date);
}

/** Requests a second, such as `10/s`. */
export function parseRate(text: string): string {
  if (!/^[1-9][0-9]{0,8}\/s$/.test(text))
    throw new Error('It takes a number of requests a second, such as 10/s.');
  return text;
}
