// Heartbeats of importers (`medref schedule`) in Redis: a dead importer is visible, and so is its next run.

import type { Redis } from './redis/connections.ts';
import { parseStored } from './redis/failures.ts';
import { heartbeatsKey } from './store/keys.ts';
import { ageText } from './text.ts';
import { knownTime } from './time.ts';

/** The heartbeat of one importer. */
export interface Heartbeat {
  /** Process and host. */
  readonly importer: string;
  readonly startedAt: string;
  /** When it was last seen, ISO 8601. */
  readonly seenAt: string;
  /** Whether it ended gracefully. */
  readonly stopped: boolean;
  readonly nextRun: string;
  readonly cron: string;
  readonly timezone: string;
  readonly collections: readonly string[];
}

/** A heartbeat as it is read. */
export interface ImporterState extends Heartbeat {
  /** Whether it runs: it was seen within the last minute. */
  readonly isAlive: boolean;
}

/** How often an importer writes its heartbeat, in ms. */
export const beatEveryMs = 10_000;

/** An importer that was not seen for this long has ended or hangs, in ms. */
const aliveMs = 60_000;

/** How long the heartbeat of an ended importer stays, in ms. */
const keptMs = 7 * 86_400_000;

/** Writes the heartbeat of this process. */
export async function writeHeartbeat(redis: Redis, keyPrefix: string, beat: Heartbeat): Promise<void> {
  const key = heartbeatsKey(keyPrefix);
  await redis.multi().hset(key, beat.importer, JSON.stringify(beat)).pexpire(key, keptMs).exec();
}

/** Deletes heartbeats that are older than a week; each start of an importer adds one. */
export async function forgetOldImporters(redis: Redis, keyPrefix: string): Promise<void> {
  const old = (await readImporters(redis, keyPrefix)).filter(
    (it) => Date.now() - Date.parse(it.seenAt) > keptMs,
  );
  if (old.length > 0) await redis.hdel(heartbeatsKey(keyPrefix), ...old.map(({ importer }) => importer));
}

/** Returns all known importers, the last seen one first. @throws DamagedKeyError */
export async function readImporters(redis: Redis, keyPrefix: string): Promise<ImporterState[]> {
  const key = heartbeatsKey(keyPrefix);
  const beats = Object.values(await redis.hgetall(key)).map((text) => parseStored<Heartbeat>(key, text));
  return beats
    .map((beat) => ({ ...beat, isAlive: !beat.stopped && Date.now() - Date.parse(beat.seenAt) < aliveMs }))
    .sort((a, b) => (a.seenAt < b.seenAt ? 1 : -1));
}

/** Returns the next run of a collection by the living importers; `null` without one. */
export function nextRunOf(importers: readonly ImporterState[], collection: string): string | null {
  const due = importers.filter((it) => it.isAlive && it.collections.includes(collection));
  return due.map(({ nextRun }) => nextRun).sort()[0] ?? null;
}

const startIt = 'Start it: docs/RUNBOOK.md, "Start and stop".';

/** Returns why no scheduled import will run, as a sentence; `null` if one will, or if no importer is known. */
export function importerProblem(importers: readonly ImporterState[]): string | null {
  const [last] = importers;
  if (!last || importers.some(({ isAlive }) => isAlive)) return null;
  const seen = knownTime(last.seenAt);
  const when = seen === null ? 'in the future' : ageText((Date.now() - Date.parse(seen)) / 1_000);
  return last.stopped
    ? `No importer runs: ${last.importer} stopped ${when}. ${startIt}`
    : `No importer runs: ${last.importer} was last seen ${when}. ${startIt}`;
}
