// Who made, rotated and revoked which key: kept in Redis, the last ones.

import type { Redis } from './redis/connections.ts';
import { parseStored } from './redis/damage.ts';
import { apiKeyKeys } from './store/keys.ts';

/** How many events stay. */
export const maxKeyEvents = 10_000;

/** What an operator did to a key. */
export interface KeyEvent {
  /** ISO 8601. */
  readonly at: string;
  readonly what: 'made' | 'rotated' | 'revoked';
  /** Of the key. */
  readonly id: string;
  readonly client: string;
  /** The key that took its place. */
  readonly rotatedTo?: string;
  /** Who did it: a user of a machine. */
  readonly by: { readonly user: string; readonly host: string };
}

/** Keeps an event. */
export async function noteKeyEvent(
  redis: Redis,
  keyPrefix: string,
  event: Omit<KeyEvent, 'at'>,
): Promise<void> {
  const noted: KeyEvent = { at: new Date().toISOString(), ...event };
  const { events } = apiKeyKeys(keyPrefix);
  await redis.xadd(events, 'MAXLEN', maxKeyEvents, '*', 'event', JSON.stringify(noted));
}

/** The last events, the latest first. @throws DamagedKeyError */
export async function lastKeyEvents(redis: Redis, keyPrefix: string, count: number): Promise<KeyEvent[]> {
  const { events } = apiKeyKeys(keyPrefix);
  const entries = await redis.xrevrange(events, '+', '-', 'COUNT', count);
  return entries.map(([, [, text = '']]) => parseStored<KeyEvent>(events, text));
}
