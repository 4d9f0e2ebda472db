// Checks whether a publication is on the replicas and disk of Redis. Redis does both after its reply, so a failover or a crash
// can lose a version that was reported.

import type { Logger } from 'pino';
import { mastersOf, type Redis, replicasOf, sendToServerOf } from '../shared/redis/connections.ts';
import { plainReason } from '../shared/redis/failures.ts';
import type { CollectionKeys } from '../shared/store/keys.ts';
import { NotPublishedError } from '../shared/store/scripts.ts';

/** How long to wait for replicas, in ms. */
const replicasMs = 1_000;

/** How long to wait for the disk, in ms: with `everysec`, Redis flushes once per second. */
const diskMs = 2_000;

/** Sends a command to the server that holds a key. */
type Ask = (command: [name: string, ...args: (string | number)[]]) => Promise<unknown>;

/** When Redis flushes its append-only file: `appendfsync`, or `none` if there is no such file. */
type Flushes = 'always' | 'everysec' | 'no' | 'none';

/**
 * Waits until all replicas and the disk have a publication, and logs a warning if they do not.
 * @returns the warnings, as sentences
 * @throws NotPublishedError if the publication is already lost
 */
export async function awaitDurability(
  redis: Redis,
  { keys, version, logger }: { keys: CollectionKeys; version: number; logger?: Logger | undefined },
): Promise<string[]> {
  const warnings = await Promise.all([
    awaitReplicas(redis, keys, version).catch((error: Error) => [
      `Unknown whether replicas have version ${version}: ${plainReason(error)}`,
    ]),
    awaitDisk(redis, keys.live, `version ${version}`),
  ]);
  if ((await redis.zscore(keys.versions, version)) === null)
    throw new NotPublishedError(
      `Version ${version} was published, but a failover or a crash lost it. Run the command again.`,
    );
  for (const warning of warnings.flat()) logger?.warn({ version }, warning);
  return warnings.flat();
}

async function awaitReplicas(redis: Redis, { live }: CollectionKeys, version: number): Promise<string[]> {
  const wanted = await replicasOf(redis, live);
  if (wanted === 0) return [];
  const acknowledged = Number(await sendToServerOf(redis, live, ['WAIT', wanted, replicasMs]));
  if (acknowledged >= wanted) return [];
  return [
    `${acknowledged} of ${wanted} replicas confirmed version ${version} within ${replicasMs / 1_000} s. A failover to another replica ` +
      'loses this version. See INFO replication. If medref status shows an older version, import again.',
  ];
}

/**
 * Waits until the writes of this connection are on the disk of Redis (WAITAOF, Redis 7.2), for two seconds at most. Returns at
 * once if Redis wrote them before its reply, or never writes to disk.
 * @param key a written key; the server with this key is asked
 * @param what the written data, as sentences name it
 * @returns warnings, as sentences
 */
export async function awaitDisk(redis: Redis, key: string, what: string): Promise<string[]> {
  const ask: Ask = (command) => sendToServerOf(redis, key, command);
  try {
    const flushes = await flushesOf(ask);
    if (flushes === 'none' || flushes === 'always') return [];
    const found = await askWhetherWritten(ask);
    if (found === 'written' || found === 'no file') return [];
    if (found === 'late')
      return [
        `Redis did not have ${what} on its disk within ${diskMs / 1_000} s. A crash of its machine can lose it. ${late(flushes)}`,
      ];
    return flushes === null ? [] : [`Unknown whether ${what} is on the disk of Redis. ${tooOld(flushes)}`];
  } catch (error) {
    return [`Unknown whether ${what} is on the disk of Redis: ${plainReason(error as Error)}`];
  }
}

/** Returns warnings, as sentences, about servers that can lose reported data in a crash. */
export async function diskWarnings(redis: Redis): Promise<string[]> {
  const found = await Promise.all(
    mastersOf(redis).map(async (server) => {
      const ask: Ask = ([name, ...args]) => server.call(name, ...args);
      const flushes = await flushesOf(ask);
      if (flushes === 'none') return nothingKept;
      if (flushes === 'no') return late(flushes);
      return flushes === 'everysec' && !(await knowsWaitaof(ask)) ? tooOld(flushes) : null;
    }),
  );
  return [...new Set(found.filter((warning) => warning !== null))];
}

/** @returns `null` if the server does not report it */
async function flushesOf(ask: Ask): Promise<Flushes | null> {
  // One pattern for both settings: Redis 6.2 accepts only one.
  const settings = (await unlessRefused(ask(['CONFIG', 'GET', 'append*']))) as string[] | null;
  if (settings === null) return null;
  const settingOf = (name: string) => settings[settings.indexOf(name) + 1];
  return settingOf('appendonly') === 'yes' ? (settingOf('appendfsync') as Flushes) : 'none';
}

async function askWhetherWritten(ask: Ask): Promise<'written' | 'late' | 'no file' | 'unknown command'> {
  try {
    const [here] = (await ask(['WAITAOF', 1, 0, diskMs])) as [here: number, onReplicas: number];
    return here === 1 ? 'written' : 'late';
  } catch (error) {
    const { message } = error as Error;
    if (message.includes('appendonly is disabled')) return 'no file';
    if (message.startsWith('ERR unknown command')) return 'unknown command';
    throw error;
  }
}

async function knowsWaitaof(ask: Ask): Promise<boolean> {
  const [known] = ((await unlessRefused(ask(['COMMAND', 'INFO', 'WAITAOF']))) ?? []) as unknown[];
  return Array.isArray(known);
}

/** Returns the reply, or `null` if Redis refuses the command: some users and hosted services may not read the configuration. */
async function unlessRefused(reply: Promise<unknown>): Promise<unknown> {
  try {
    return await reply;
  } catch (error) {
    if (/^(NOPERM|ERR unknown)\b/.test((error as Error).message)) return null;
    throw error;
  }
}

const nothingKept =
  'Redis has no append-only file (appendonly no): a restart loses versions and API keys since its last snapshot, or all of them. Set appendonly to yes.';

function tooOld(flushes: Flushes): string {
  return (
    `This Redis is set to appendfsync ${flushes} and cannot report its writes to disk, as Redis 7.2 can: ` +
    'a crash of its machine may lose reported data. Set appendfsync to always, or use a newer Redis.'
  );
}

function late(flushes: Flushes | null): string {
  return flushes === 'no'
    ? 'With appendfsync no, the operating system decides when to write to disk. Set it to everysec or always.'
    : 'See INFO persistence, and check whether the disk is busy.';
}
