// A key that does not hold what medref stores under it: how that is noticed, and how it is told.

import type { Redis } from './connections.ts';

/** What Redis holds under a key is not what medref stores there; the message names the key and says what it is. */
export class DamagedKeyError extends Error {}

/** A value as it was stored under a key, from its JSON text. @throws DamagedKeyError where it is none */
export function parseStored<Value>(key: string, text: string): Value {
  try {
    const value: unknown = JSON.parse(text);
    if (typeof value === 'object' && value !== null) return value as Value;
  } catch {
    // Told below.
  }
  throw new DamagedKeyError(`The Redis key ${key} holds text that medref did not store there.`);
}

/** Whether an error of a command says that its key is of another type than the command is for. */
export function isWrongType(error: unknown): boolean {
  return error instanceof Error && error.name === 'ReplyError' && /\bWRONGTYPE\b/.test(error.message);
}

/** What an error tells of a damaged key, with the key and its type; `null` where it tells of something else. */
export async function damageIn(redis: Redis, error: unknown): Promise<DamagedKeyError | null> {
  if (error instanceof DamagedKeyError) return error;
  if (!isWrongType(error)) return null;
  const { command } = error as { command?: { name: string; args: readonly unknown[] } };
  const key = String(command?.args[0]);
  const type = await redis.type(key);
  return new DamagedKeyError(`The Redis key ${key} is a ${type}, which is not what medref stores there.`);
}
