// API keys as they are stored, by their SHA-256 alone: made, listed, rotated and revoked by operators.

import { hash, randomBytes, randomInt } from 'node:crypto';
import { crc32 } from 'node:zlib';
import { execute, type Redis } from '../redis/connections.ts';
import { parseStored } from '../redis/failures.ts';
import { apiKeyKeys } from './keys.ts';
import { type KeyReplacement, replaceKey } from './scripts.ts';

/** What is known of a key; never the key itself. */
export interface ApiKey {
  readonly id: string;
  /** Whom it was issued to. */
  readonly client: string;
  /** ISO 8601. */
  readonly createdAt: string;
  /** ISO 8601; `null`: it does not expire. */
  readonly expiresAt: string | null;
  /** Requests a second it is made for, such as `10/s`; `null`: it has no rate of its own. */
  readonly rate: string | null;
  /** The collections that it is made for; absent: all, also those to come. */
  readonly collections?: readonly string[];
  /** The id of the key that is to take its place, and since when; absent: it was not rotated. */
  readonly rotatedTo?: string;
  readonly rotatedAt?: string;
}

/** A key as an operator sees it. */
export interface ListedApiKey extends ApiKey {
  readonly lastUsedAt: string | null;
}

/** A key that was made: what is known of it, and its text, which cannot be had again. */
export type MadeApiKey = ApiKey & { readonly key: string };

/** What a key is made with. */
export interface ApiKeyTerms {
  readonly client: string;
  readonly expiresAt: Date | null;
  readonly rate: string | null;
  readonly collections?: readonly string[] | undefined;
}

/** The field of the hash of keys that has another value after each change of them. */
export const generationField = 'generation';

/** Makes a key. */
export async function createApiKey(
  redis: Redis,
  keyPrefix: string,
  { expiresAt, ...terms }: ApiKeyTerms,
): Promise<MadeApiKey> {
  const made = newKey({ ...terms, expiresAt: expiresAt?.toISOString() ?? null });
  const { keys } = apiKeyKeys(keyPrefix);
  await redis.hset(keys, ...storedAs(made), generationField, newGeneration());
  await announce(redis, keyPrefix, made.id);
  return made;
}

/** All keys, oldest first. @throws DamagedKeyError */
export async function listApiKeys(redis: Redis, keyPrefix: string): Promise<ListedApiKey[]> {
  const { keys, lastUse } = apiKeyKeys(keyPrefix);
  const [stored, used] = await Promise.all([redis.hgetall(keys), redis.hgetall(lastUse)]);
  return textsOf(stored)
    .map(([, text]) => parseStored<ApiKey>(keys, text))
    .map((key) => listed(key, used[key.id] ?? null))
    .sort((a, b) => (a.createdAt < b.createdAt ? -1 : 1));
}

/** Its usual members first: what few keys have is behind them. */
function listed(
  { collections, rotatedTo, rotatedAt, ...usual }: ApiKey,
  lastUsedAt: string | null,
): ListedApiKey {
  const some = { ...(collections && { collections }), ...(rotatedTo && { rotatedTo, rotatedAt }) };
  return { ...usual, lastUsedAt, ...some } as ListedApiKey;
}

/** Whether a key that another one is to replace has been used since. */
export function isStillUsed({ rotatedAt, lastUsedAt }: ListedApiKey): boolean {
  return rotatedAt !== undefined && lastUsedAt !== null && lastUsedAt > rotatedAt;
}

/** The key with this id; `null` when there is none. */
export async function findApiKey(redis: Redis, keyPrefix: string, id: string): Promise<ApiKey | null> {
  return (await findStored(redis, apiKeyKeys(keyPrefix).keys, id))?.key ?? null;
}

/** Revokes the key with this id at once, and tells all processes that serve. @returns whether there was one */
export async function revokeApiKey(redis: Redis, keyPrefix: string, id: string): Promise<boolean> {
  const { keys, lastUse } = apiKeyKeys(keyPrefix);
  const found = await findStored(redis, keys, id);
  if (!found) return false;
  const generation = newGeneration();
  await execute(() => redis.multi().hdel(keys, found.digest).hset(keys, generationField, generation));
  await announce(redis, keyPrefix, id);
  await redis.hdel(lastUse, id);
  return true;
}

/** A key that was rotated. */
export interface Rotation {
  /** The one that takes its place. */
  readonly made: MadeApiKey;
  /** The old one, as it is now. */
  readonly old: ApiKey;
  /** Makes all of it undone. */
  undo(): Promise<void>;
}

/** A key that cannot be rotated; the message says why, and what to do. */
export class RotationError extends Error {}

/**
 * Makes a key on the same terms as another one, which ends after the overlap, and never later than it would have.
 * @param overlapS in seconds
 * @returns `null` when there is no key with this id. @throws RotationError
 */
export async function rotateApiKey(
  redis: Redis,
  keyPrefix: string,
  { id, overlapS }: { readonly id: string; readonly overlapS: number },
): Promise<Rotation | null> {
  const { keys } = apiKeyKeys(keyPrefix);
  const found = await findStored(redis, keys, id);
  if (!found) return null;
  const { digest, text, key } = found;
  mindRotation(key);
  const made = newKey(key);
  const now = new Date();
  const ends = new Date(now.getTime() + overlapS * 1_000).toISOString();
  const old: ApiKey = {
    ...{ ...key, rotatedTo: made.id, rotatedAt: now.toISOString() },
    expiresAt: key.expiresAt !== null && key.expiresAt < ends ? key.expiresAt : ends,
  };
  const changed = JSON.stringify(old);
  const isDone = await replace(redis, keys, {
    ...{ digest, from: text, to: changed },
    also: storedAs(made),
  });
  if (!isDone) throw new RotationError(`The key ${id} was changed or revoked meanwhile, and is not rotated.`);
  await announce(redis, keyPrefix, id);
  return {
    ...{ made, old },
    async undo() {
      await revokeApiKey(redis, keyPrefix, made.id);
      await replace(redis, keys, { digest, from: changed, to: text, also: [digest, text] });
    },
  };
}

function mindRotation({ id, expiresAt, rotatedTo }: ApiKey): void {
  if (expiresAt !== null && Date.parse(expiresAt) <= Date.now())
    throw new RotationError(
      `The key ${id} expired at ${expiresAt}. Make a new one with "medref keys create".`,
    );
  if (rotatedTo)
    throw new RotationError(
      `The key ${id} was rotated before; ${rotatedTo} takes its place. Rotate that one, or make a new one with "medref keys create".`,
    );
}

/** A new key on these terms. */
function newKey({
  client,
  expiresAt,
  rate,
  collections,
}: Pick<ApiKey, 'client' | 'expiresAt' | 'rate'> & {
  readonly collections?: readonly string[] | undefined;
}): MadeApiKey {
  return {
    id: randomBytes(6).toString('hex'),
    client,
    key: makeKeyText(),
    createdAt: new Date().toISOString(),
    expiresAt,
    rate,
    ...(collections && { collections }),
  };
}

/** A field of the hash and its value. */
function storedAs({ key, ...known }: MadeApiKey): [digest: string, text: string] {
  return [digestOf(key), JSON.stringify(known)];
}

/** Keys by their ids: all of them are read, for an act that happens a few times a year. */
async function findStored(
  redis: Redis,
  keys: string,
  id: string,
): Promise<{ readonly digest: string; readonly text: string; readonly key: ApiKey } | null> {
  for (const [digest, text] of textsOf(await redis.hgetall(keys))) {
    const key = parseStored<ApiKey>(keys, text);
    if (key.id === id) return { digest, text, key };
  }
  return null;
}

/** The digests and JSON texts of all keys in the stored hash. */
function textsOf({
  [generationField]: _,
  ...stored
}: Record<string, string>): [digest: string, text: string][] {
  return Object.entries(stored);
}

/** A random value: a counter would come to the same number twice if a failover loses a change. */
function newGeneration(): string {
  return randomBytes(9).toString('base64url');
}

/** Replaces a stored key and sets another one. @returns whether nobody else had changed it */
function replace(redis: Redis, keys: string, { also, ...replaced }: KeyReplacement): Promise<boolean> {
  return replaceKey(redis, keys, { ...replaced, also: [...also, generationField, newGeneration()] });
}

/** A process that misses the announcement asks Redis within half a second. */
async function announce(redis: Redis, keyPrefix: string, id: string): Promise<void> {
  await redis.publish(apiKeyKeys(keyPrefix).announcements, id);
}

/** What a key is stored under: keys are random, so a quick hash will do. */
export function digestOf(key: string): string {
  return hash('sha256', key);
}

const digits = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz';

/** 62^43 is more than 2^256. */
const secretLength = 43;

/** 62^6 is more than 2^32. */
const checkLength = 6;

/** Makes a key: `medref_`, 43 random characters, and their CRC-32 in 6 characters. */
export function makeKeyText(): string {
  const secret = Array.from({ length: secretLength }, () => digits[randomInt(digits.length)]).join('');
  return `medref_${secret}${checkOf(secret)}`;
}

/** Returns the CRC-32 of a text in base 62. */
function checkOf(secret: string): string {
  let check = '';
  for (let rest = crc32(secret); check.length < checkLength; rest = Math.floor(rest / digits.length))
    check = digits[rest % digits.length] + check;
  return check;
}
