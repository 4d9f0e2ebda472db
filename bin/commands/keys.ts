// medref keys: creates, lists, revokes and rotates API keys.

import { awaitDisk } from '../../importer/durability.ts';
import { servedCollections } from '../../shared/collections/collections.ts';
import type { Redis } from '../../shared/redis/connections.ts';
import {
  createApiKey,
  findApiKey,
  isStillUsed,
  type MadeApiKey,
  revokeApiKey,
  rotateApiKey,
} from '../../shared/store/api-keys.ts';
import {
  type ComparedClientVersion,
  type ListedClient,
  listClients,
} from '../../shared/store/client-versions.ts';
import { apiKeyKeys } from '../../shared/store/keys.ts';
import { counted } from '../../shared/text.ts';
import { type CommandContext, exitCodes } from '../context.ts';
import { type OutputOptions, print, printSafely, table, wrapped } from '../output.ts';
import { createLogger, operatorName, withRedis } from '../session.ts';

/** How long a rotated key works by default, in seconds. */
const defaultOverlapS = 86_400;

/** The properties of a new key. */
export interface KeyOptions {
  readonly client: string;
  readonly expires?: Date;
  readonly rate?: string;
  readonly collections?: readonly string[];
}

/** Creates a key and prints it once. A key that cannot be printed is revoked. @returns the exit code */
export async function createKey(
  context: CommandContext,
  { client, expires, rate, collections, json }: OutputOptions & KeyOptions,
): Promise<number> {
  context.mindResults();
  return withKeys(context, async (redis) => {
    const { keyPrefix } = context.settings;
    const terms = { client, expiresAt: expires ?? null, rate: rate ?? null, collections };
    const made = await createApiKey(redis, keyPrefix, terms);
    const { id, expiresAt } = made;
    const title = `Key ${id} for ${client}${expiresAt ? `, expires ${expiresAt}` : ''}. It is shown only once:`;
    try {
      log(context, { id, client, expiresAt, rate: made.rate, collections }, 'A key was made.');
      await awaitStored(context, redis, `key ${id}`);
      await printKey(context, made, { json: json === true, title });
    } catch (error) {
      await revokeApiKey(redis, keyPrefix, id);
      log(context, { id, client }, 'Revoked a new key, because it could not be printed.');
      throw new Error(`The key could not be printed and was revoked: ${(error as Error).message}.`);
    }
    return exitCodes.done;
  });
}

/** Prints all keys without their secrets. @returns the exit code */
export async function listKeys(context: CommandContext, options: OutputOptions): Promise<number> {
  return withKeys(context, async (redis) => {
    const { keyPrefix, defaultRate } = context.settings;
    const keys = await listClients(redis, keyPrefix, servedCollections);
    print(context, { keys }, options, () =>
      table(
        ['id', 'created', 'expires', 'last used', 'rate', 'client'],
        keys.flatMap((key) => keyRows(key, defaultRate)),
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
    if (!key || !(await revokeApiKey(redis, keyPrefix, id))) throw unknownKey(id);
    const { client } = key;
    log(context, { id, client }, 'A key was revoked.');
    await awaitStored(context, redis, `the end of key ${id}`);
    print(context, { id, client }, options, () => `Key ${id} of ${client} is revoked.`);
    return exitCodes.done;
  });
}

/** Replaces a key and prints the new one once. If it cannot print the key, it undoes the rotation. @returns the exit code */
export async function rotateKey(
  context: CommandContext,
  id: string,
  { overlap = defaultOverlapS, json }: OutputOptions & { overlap?: number },
): Promise<number> {
  context.mindResults();
  return withKeys(context, async (redis) => {
    const rotation = await rotateApiKey(redis, context.settings.keyPrefix, { id, overlapS: overlap });
    if (!rotation) throw unknownKey(id);
    const { made, old } = rotation;
    const { client } = made;
    const title = `Key ${made.id} for ${client} replaces ${id}, which expires ${old.expiresAt}. It is shown only once:`;
    const facts = { id, client, rotatedTo: made.id };
    try {
      log(context, { ...facts, endsAt: old.expiresAt }, 'A key was rotated.');
      await awaitStored(context, redis, `key ${made.id}`);
      await printKey(context, made, { json: json === true, title });
    } catch (error) {
      await rotation.undo();
      log(context, facts, 'Undid a rotation, because the new key could not be printed.');
      throw new Error(
        `The new key could not be printed; key ${id} is unchanged: ${(error as Error).message}.`,
      );
    }
    return exitCodes.done;
  });
}

/** Runs a command on API keys, which some Redis users may not read. */
async function withKeys(
  { settings }: CommandContext,
  run: (redis: Redis) => Promise<number>,
): Promise<number> {
  return withRedis(settings, run).catch((error: Error) => {
    if (!error.message.startsWith('NOPERM')) throw error;
    const [, user = 'default'] = /^[^/]+\/\/([^:@/]+)[:@]/.exec(settings.redisUrl) ?? [];
    throw new Error(
      `Redis user "${user}" may not read and change API keys. Run this with the REDIS_URL of the user "operator".`,
    );
  });
}

/** Logs an action and its operator. */
function log(context: CommandContext, facts: object, message: string): void {
  createLogger(context).info({ by: operatorName(), ...facts }, message);
}

function unknownKey(id: string): Error {
  return new Error(`No key has the id ${JSON.stringify(id)}. "medref keys list" shows all keys.`);
}

/** Waits until a change is on the disk of Redis: a crash must not bring a revoked key back. */
async function awaitStored(context: CommandContext, redis: Redis, what: string): Promise<void> {
  const { keys } = apiKeyKeys(context.settings.keyPrefix);
  for (const warning of await awaitDisk(redis, keys, what)) createLogger(context).warn(warning);
}

async function printKey(
  context: CommandContext,
  { id, client, key, expiresAt, rate, collections }: MadeApiKey,
  { json, title }: { readonly json: boolean; readonly title: string },
): Promise<void> {
  const result = { id, client, key, expiresAt, rate, ...(collections && { collections }) };
  await printSafely(context, result, { json }, () => `${wrapped(title)}\n${key}`);
}

/** Returns a row of a key, and further rows for its collections, its rotation and its versions, so that rows fit 80 columns. */
function keyRows(key: ListedClient, defaultRate = 'no limit'): string[][] {
  const { id, client, createdAt, expiresAt, rate, collections, lastUsedAt, rotatedTo } = key;
  const dates = [createdAt, expiresAt, lastUsedAt].map((it) => it?.slice(0, 10) ?? 'never');
  const facts = [
    ...(collections ? [`only ${collections.join(', ')}`] : []),
    ...(rotatedTo ? [`rotated to ${rotatedTo}, ${isStillUsed(key) ? 'still used' : 'unused since'}`] : []),
    ...Object.entries(key.versions).map(([collection, its]) => `${collection} ${versionText(its)}`),
  ];
  return [[id, ...dates, rate ?? defaultRate, client], ...facts.map((it) => ['', it])];
}

/** Returns a version of a client as text: `20261122030000, verified, 2 versions behind`. */
function versionText({ version, isVerified, behind }: ComparedClientVersion): string {
  const how = isVerified ? 'verified' : 'served';
  return `${version}, ${how}, ${behind === 0 ? 'live' : `${counted(behind, 'version')} behind`}`;
}
