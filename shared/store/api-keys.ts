// API keys, stored only by their SHA-256: operators create, list, rotate and revoke them.

import { hash, randomBytes, randomInt } from 'node:crypto';
import { crc32 } from 'node:zlib';
import { execute, type Redis } from '../redis/connections.ts';
import { parseStored } from '../redis/failures.ts';
import { apiKeyKeys } from './keys.ts';
import { type KeyReplacement, replaceKey } from './scripts.ts';

/** The properties of a key, without the key itself. */
export interface ApiKey {
  readonly id: string;
  /** The client that the key was issued to. */
  readonly client: string;
  /** ISO 8601. */
  readonly createdAt: string;
  /** ISO 8601; `null`: no expiry. */
  readonly expiresAt: string | null;
  /** Its rate limit, such as `10/s`; `null`: the default limit. */
  readonly rate: string | null;
  /** The collections that it may read; absent: all, including future ones. */
  readonly collections?: readonly string[];
  /** The id of the new key after a rotation; absent: not rotated. */
  readonly rotatedTo?: string;
  readonly rotatedAt?: string;
}

/** A key in the list for operators. */
export interface ListedApiKey extends ApiKey {
  readonly lastUsedAt: string | null;
}

/** A created key: its properties and its text, which is not stored. */
export type MadeApiKey = ApiKey & { readonly key: string };

/** The properties of a new key. */
export interface ApiKeyTerms {
  readonly client: string;
  readonly expiresAt: Date | null;
  readonly rate: string | null;
  readonly collections?: readonly string[] | undefined;
}

/** The field of the hash of keys that changes with each change of a key. */
export const generationField = 'generation';

/** Creates a key. */
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

/** Returns all keys, oldest first. @throws DamagedKeyError */
export async function listApiKeys(redis: Redis, keyPrefix: string): Promise<ListedApiKey[]> {
  const { keys, lastUse } = apiKeyKeys(keyPrefix);
  const [stored, used] = await Promise.all([redis.hgetall(keys), redis.hgetall(lastUse)]);
  return textsOf(stored)
    .map(([, text]) => parseStored<ApiKey>(keys, text))
    .map((key) => listed(key, used[key.id] ?? null))
    .sort((a, b) => (a.createdAt < b.createdAt ? -1 : 1));
}

/** Orders the members of a key: common ones first. */
function listed(
  { collections, rotatedTo, rotatedAt, ...usual }: ApiKey,
  lastUsedAt: string | null,
): ListedApiKey {
  const some = { ...(collections && { collections }), ...(rotatedTo && { rotatedTo, rotatedAt }) };
  return { ...usual, lastUsedAt, ...some } as ListedApiKey;
}

/** Returns whether a rotated key has been used since the rotation. */
export function isStillUsed({ rotatedAt, lastUsedAt }: ListedApiKey): boolean {
  return rotatedAt !== undefined && lastUsedAt !== null && lastUsedAt > rotatedAt;
}

/** Returns the key with this id; `null` if there is none. */
export async function findApiKey(redis: Redis, keyPrefix: string, id: string): Promise<ApiKey | null> {
  return (await findStored(redis, apiKeyKeys(keyPrefix).keys, id))?.key ?? null;
}

/** Revokes a key at once and announces that to all API processes. @returns whether the key existed */
export async function revokeApiKey(redis: Redis, keyPrefix: string, id: string): Promise<boolean> {
  const { keys, lastUse } = apiKeyKeys(keyPrefix);
  const found = await findStored(redis, keys, id);
  if (!found) return false;
  const generation = newGeneration();
  await execute(() => redis.multi().hdel(keys, found.digest).hset(keys, generationField, generation));
  await announce(redis, keyPrefix, id);
  const fields = await redis.hkeys(lastUse);
  await redis.hdel(lastUse, ...fields.filter((field) => field === id || field.startsWith(`${id}:`)), id);
  return true;
}

/** A rotated key. */
export interface Rotation {
  /** The new key. */
  readonly made: MadeApiKey;
  /** The old key in its new state. */
  readonly old: ApiKey;
  /** Undoes the rotation. */
  undo(): Promise<void>;
}

/** A key that cannot be rotated. The message says why, and what to do. */
export class RotationError extends Error {}

/**
 * Creates a key with the same properties as another, which expires after the overlap or at its own expiry if that is earlier.
 * @param overlapS in seconds
 * @returns `null` if there is no key with this id. @throws RotationError
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
  if (!isDone) throw new RotationError(`The key ${id} was changed or revoked meanwhile; it was not rotated.`);
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
      `The key ${id} expired at ${expiresAt}. Create a new one with "medref keys create".`,
    );
  if (rotatedTo)
    throw new RotationError(
      `The key ${id} was already rotated to ${rotatedTo}. Rotate that key, or create a new one with "medref keys create".`,
    );
}

/** Builds a new key with these properties. */
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

/** Returns the field and value of the hash for a key. */
function storedAs({ key, ...known }: MadeApiKey): [digest: string, text: string] {
  return [digestOf(key), JSON.stringify(known)];
}

/** Finds a key by its id. It reads all keys, which is fast enough for a rare command. */
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

/** Returns digests with JSON texts of all keys in the stored hash. */
function textsOf({
  [generationField]: _,
  ...stored
}: Record<string, string>): [digest: string, text: string][] {
  return Object.entries(stored);
}

/** A random value: after a failover that loses a change, a counter could repeat a number. */
function newGeneration(): string {
  return randomBytes(9).toString('base64url');
}

/** Replaces a stored key and sets a second one. @returns `false` if the key has changed meanwhile */
function replace(redis: Redis, keys: string, { also, ...replaced }: KeyReplacement): Promise<boolean> {
  return replaceKey(redis, keys, { ...replaced, also: [...also, generationField, newGeneration()] });
}

/** A process that misses the announcement polls Redis every half second. */
async function announce(redis: Redis, keyPrefix: string, id: string): Promise<void> {
  await redis.publish(apiKeyKeys(keyPrefix).announcements, id);
}

/** Returns the digest under which a key is stored. Keys are random, so a fast hash is sufficient. */
export function digestOf(key: string): string {
  return hash('sha256', key);
}

const digits = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz';

/** 62^43 is more than 2^256. */
const secretLength = 43;

/** 62^6 is more than 2^32. */
const checkLength = 6;

/** Creates the text of a key: `medref_`, 43 random characters, and their CRC-32 in 6 characters. */
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
