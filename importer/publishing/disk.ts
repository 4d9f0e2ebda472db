// In: what was written, and how Redis is set up. Out: that it is on the disk of Redis, or a sentence: with an append-only file
// that is flushed each second, Redis replies first, and a crash of its machine can lose what was reported.

import type { Logger } from 'pino';
import { beside, mastersOf, type Redis } from '../../shared/redis/connections.ts';
import { plainReason } from '../../shared/redis/failures.ts';

/** How long the disk is waited for, in ms: with `everysec`, a flush begins within a second. */
const waitMs = 2_000;

/** What was written. */
export interface Written {
  /** A key of it: its server is asked. */
  readonly key: string;
  /** As a sentence names it. */
  readonly what: string;
  readonly logger?: Logger | undefined;
}

/**
 * Waits until what this connection has written is on the disk of Redis (WAITAOF, Redis 7.2), for two seconds at most; for
 * nothing where it was there before the reply, or is not to be.
 * @returns what an operator is to be warned of, as sentences
 */
export async function awaitDisk(redis: Redis, { key, what, logger }: Written): Promise<string[]> {
  const ask: Ask = (command) => beside(redis, key, command);
  try {
    const flushes = await flushesOf(ask);
    if (flushes === 'none' || flushes === 'always') return [];
    const found = await askWhetherWritten(ask);
    if (found === 'written') logger?.info({ what }, 'It is on the disk of Redis.');
    if (found === 'written' || found === 'no file') return [];
    if (found === 'unknown command')
      return flushes === null
        ? []
        : [`Whether ${what} is on the disk of Redis is not known. ${tooOld(flushes)}`];
    return [
      `Redis did not have ${what} on its disk within ${waitMs / 1_000} s. If its machine crashes now, that may be lost. ${late(flushes)}`,
    ];
  } catch (error) {
    return [`Whether ${what} is on the disk of Redis is not known: ${plainReason(error as Error)}`];
  }
}

/** Which servers may lose by a crash what was reported, as sentences. */
export async function diskWarnings(redis: Redis): Promise<string[]> {
  const found = await Promise.all(
    mastersOf(redis).map(async (server) => {
      const ask: Ask = ([name, ...args]) => server.call(name, ...args);
      const flushes = await flushesOf(ask);
      if (flushes === 'no') return late(flushes);
      return flushes === 'everysec' && !(await knowsWait(ask)) ? tooOld(flushes) : null;
    }),
  );
  return [...new Set(found.filter((warning) => warning !== null))];
}

type Ask = (command: [name: string, ...args: (string | number)[]]) => Promise<unknown>;

/** When Redis flushes its append-only file: `appendfsync`, or `none` where there is no such file. */
type Flushes = 'always' | 'everysec' | 'no' | 'none';

/** @returns `null` where Redis does not tell */
async function flushesOf(ask: Ask): Promise<Flushes | null> {
  // One pattern for both: Redis 6.2 takes no second one.
  const told = (await unlessRefused(ask(['CONFIG', 'GET', 'append*']))) as string[] | null;
  if (told === null) return null;
  const settingOf = (name: string) => told[told.indexOf(name) + 1];
  return settingOf('appendonly') === 'yes' ? (settingOf('appendfsync') as Flushes) : 'none';
}

async function askWhetherWritten(ask: Ask): Promise<'written' | 'late' | 'no file' | 'unknown command'> {
  try {
    const [here] = (await ask(['WAITAOF', 1, 0, waitMs])) as [here: number, onReplicas: number];
    return here === 1 ? 'written' : 'late';
  } catch (error) {
    const { message } = error as Error;
    if (message.includes('appendonly is disabled')) return 'no file';
    if (message.startsWith('ERR unknown command')) return 'unknown command';
    throw error;
  }
}

async function knowsWait(ask: Ask): Promise<boolean> {
  const [told] = ((await unlessRefused(ask(['COMMAND', 'INFO', 'WAITAOF']))) ?? []) as unknown[];
  return Array.isArray(told);
}

/** Not every user may ask how Redis is set up, and not every Redis that is rented tells. */
async function unlessRefused(reply: Promise<unknown>): Promise<unknown> {
  try {
    return await reply;
  } catch (error) {
    if (/^(NOPERM|ERR unknown)\b/.test((error as Error).message)) return null;
    throw error;
  }
}

function tooOld(flushes: Flushes): string {
  return (
    `This Redis is set to appendfsync ${flushes} and cannot tell when it has written to its disk, as Redis 7.2 can: ` +
    'a crash of its machine may lose what was reported. Set appendfsync to always, or take a newer Redis.'
  );
}

function late(flushes: Flushes | null): string {
  return flushes === 'no'
    ? 'With appendfsync no, Redis leaves it to its system when it writes to its disk: set it to everysec or always.'
    : 'See INFO persistence, and whether its disk is busy.';
}
