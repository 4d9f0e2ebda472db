// medref keys: API keys, from their making to their end.

import { awaitDisk } from '../../importer/durability.ts';
import type { Redis } from '../../shared/redis/connections.ts';
import {
  createApiKey,
  findApiKey,
  isStillUsed,
  type ListedApiKey,
  listApiKeys,
  type MadeApiKey,
  revokeApiKey,
  rotateApiKey,
} from '../../shared/store/api-keys.ts';
import { apiKeyKeys } from '../../shared/store/keys.ts';
import { exitCodes } from '../exit-codes.ts';
import { createLogger, type Logger } from '../logger.ts';
import { operator } from '../operator.ts';
import type { CommandContext } from '../surroundings.ts';
import { type OutputOptions, print, printSafely, table } from './output.ts';
import { withRedis } from './with-redis.ts';

/** For how long a key that was rotated goes on working, in seconds, unless somebody says otherwise. */
const usualOverlapS = 86_400;

/** What a key may be made with. */
export interface KeyOptions {
  readonly client: string;
  readonly expires?: Date;
  readonly rate?: string;
  readonly collections?: readonly string[];
}

/** Runs a command on API keys, which not every Redis user may read. */
async function withKeys<Result>(
  { settings }: CommandContext,
  run: (redis: Redis) => Promise<Result>,
): Promise<Result> {
  return withRedis(settings, run).catch((error: Error) => {
    if (!error.message.startsWith('NOPERM')) throw error;
    const [, user = 'default'] = /^[^/]+\/\/([^:@/]+)[:@]/.exec(settings.redisUrl) ?? [];
    throw new Error(
      `Redis user "${user}" may not read and change API keys. Run this with the REDIS_URL of the user "operator".`,
    );
  });
}

/** Makes a key and prints it, this once; one that could not be printed is revoked again. @returns the exit code */
export async function createKey(
  context: CommandContext,
  { client, expires, rate, collections, json }: OutputOptions & KeyOptions,
): Promise<number> {
  context.mindResults();
  return withKeys(context, async (redis) => {
    const { keyPrefix } = context.settings;
    const terms = { client, expiresAt: expires ?? null, rate: rate ?? null, collections };
    const made = await createApiKey(redis, keyPrefix, terms);
    const { id, key, expiresAt } = made;
    const text = () =>
      [
        `Key ${id} for ${client}${expiresAt ? `, expires ${expiresAt}` : ''}. It is shown this once:`,
        key,
      ].join('\n');
    const logger = createLogger(context).child({ by: operator(), id, client });
    try {
      logger.info({ expiresAt, rate: made.rate, collections }, 'A key was made.');
      await onDisk(context, redis, { what: `key ${id}`, logger });
      await printSafely(context, shown(made), { json: json === true }, text);
    } catch (error) {
      await revokeApiKey(redis, keyPrefix, id);
      logger.info('A key was revoked, since it could not be written.');
      throw new Error(`The key could not be written, so it was revoked: ${(error as Error).message}.`);
    }
    return exitCodes.done;
  });
}

/** Prints what is known of all keys. @returns the exit code */
export async function listKeys(context: CommandContext, options: OutputOptions): Promise<number> {
  return withKeys(context, async (redis) => {
    const { keyPrefix, defaultRate } = context.settings;
    const keys = await listApiKeys(redis, keyPrefix);
    print(context, { keys }, options, () =>
      table(
        ['id', 'client', 'created', 'expires', 'rate', 'collections', 'last used', 'rotated'],
        keys.map((key) => keyRow(key, defaultRate)),
      ),
    );
    return exitCodes.done;
  });
}

/** Revokes a key. @returns the exit code */
export async function revokeKey(
  context: CommandContext,
  id: string,
  options: OutputOptions,
): Promise<number> {
  return withKeys(context, async (redis) => {
    const { keyPrefix } = context.settings;
    const key = await findApiKey(redis, keyPrefix, id);
    if (!key) throw unknownKey(id);
    const { client } = key;
    if (!(await revokeApiKey(redis, keyPrefix, id))) throw unknownKey(id);
    const logger = createLogger(context);
    logger.info({ by: operator(), id, client }, 'A key was revoked.');
    await onDisk(context, redis, { what: `the end of key ${id}`, logger });
    print(context, { id, client }, options, () => `Key ${id} of ${client} is revoked.`);
    return exitCodes.done;
  });
}

/**
 * Makes a key that takes the place of another one, and prints it, this once; where it could not be printed, all is as it
 * was. @returns the exit code
 */
export async function rotateKey(
  context: CommandContext,
  id: string,
  { overlap = usualOverlapS, json }: OutputOptions & { overlap?: number },
): Promise<number> {
  context.mindResults();
  return withKeys(context, async (redis) => {
    const rotation = await rotateApiKey(redis, context.settings.keyPrefix, { id, overlapS: overlap });
    if (!rotation) throw unknownKey(id);
    const { made, old } = rotation;
    const { client } = made;
    const text = () =>
      [
        `Key ${made.id} for ${client} takes the place of ${id}, which ends ${old.expiresAt}. It is shown this once:`,
        made.key,
      ].join('\n');
    const logger = createLogger(context).child({ by: operator(), id, client, rotatedTo: made.id });
    try {
      logger.info({ endsAt: old.expiresAt }, 'A key was rotated.');
      await onDisk(context, redis, { what: `key ${made.id}`, logger });
      await printSafely(context, shown(made), { json: json === true }, text);
    } catch (error) {
      await rotation.undo();
      logger.info('The rotation was undone, since the new key could not be written.');
      throw new Error(
        `The new key could not be written, so key ${id} stays as it was: ${(error as Error).message}.`,
      );
    }
    return exitCodes.done;
  });
}

function unknownKey(id: string): Error {
  return new Error(`There is no key with the id ${JSON.stringify(id)}; "medref keys list" shows all.`);
}

/** Waits until what was done to keys is on the disk of Redis: a crash must not bring a revoked one back. */
async function onDisk(
  { settings }: CommandContext,
  redis: Redis,
  { what, logger }: { readonly what: string; readonly logger: Logger },
): Promise<void> {
  const { keys: key } = apiKeyKeys(settings.keyPrefix);
  for (const warning of await awaitDisk(redis, key, what)) logger.warn(warning);
}

/** A key that was made, for programs. */
function shown({ id, client, key, expiresAt, rate, collections }: MadeApiKey): Partial<MadeApiKey> {
  return { id, client, key, expiresAt, rate, ...(collections && { collections }) };
}

function keyRow(key: ListedApiKey, defaultRate = 'no limit'): string[] {
  return [
    ...[key.id, key.client, key.createdAt, key.expiresAt ?? 'never', key.rate ?? defaultRate],
    ...[key.collections?.join(',') ?? 'all', key.lastUsedAt ?? 'never', rotated(key)],
  ];
}

function rotated(key: ListedApiKey): string {
  if (!key.rotatedTo) return '';
  return `to ${key.rotatedTo}, ${isStillUsed(key) ? 'still used' : 'not used since'}`;
}
