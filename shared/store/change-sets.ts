// A change set as it is stored: the digests of each record before and after, by id, and what the set says of itself, so
// that one that has lost a part, or got one wrong, is told from another.

import { hash } from 'node:crypto';
import type { Redis } from '../redis/connections.ts';
import { isWrongType } from '../redis/damage.ts';

/** The field of a change set that holds what it says of itself. */
export const factsField = '#';

/** How many fields of a change set are read with one command. */
const fieldsAtOnce = 1_000;

/** What is known of a change set. */
export interface ChangeSetFacts {
  /** How many ids it has. */
  readonly size: number;
  /** The sum of all its entries, modulo 2^32. `undefined`: of a set that an older release kept. */
  readonly sum: number | undefined;
  /** The version that it is against, which was live before. */
  readonly previous: number | undefined;
}

/** The facts as they are stored. */
export function changeSetText({ size, sum, previous }: ChangeSetFacts): string {
  return [size, sum, previous].filter((it) => it !== undefined).join(' ');
}

/**
 * Reads a change set, by parts, since it may be large.
 * @param take is given each id, with the digests of its record before and after, `-` where there is none
 * @returns what it says of itself; `null` where it is not there, or not as it was kept
 */
export async function readChangeSet(
  redis: Redis,
  key: string,
  take: (id: string, digests: string) => void = () => undefined,
): Promise<ChangeSetFacts | null> {
  try {
    return await readFields(redis, key, take);
  } catch (error) {
    if (isWrongType(error)) return null;
    throw error;
  }
}

async function readFields(
  redis: Redis,
  key: string,
  take: (id: string, digests: string) => void,
): Promise<ChangeSetFacts | null> {
  const text = await redis.hget(key, factsField);
  const facts = text === null ? null : parseFacts(text);
  if (!facts) return null;
  const seen = new Set<number>();
  let sum = 0;
  let cursor = '0';
  do {
    const [next, fields] = await redis.hscan(key, cursor, 'COUNT', fieldsAtOnce);
    for (let i = 0; i < fields.length; i += 2) {
      const [id, digests] = [fields[i] as string, fields[i + 1] as string];
      if (id === factsField || seen.has(Number(id))) continue; // A scan may give a field twice.
      seen.add(Number(id));
      if (facts.sum !== undefined) sum = (sum + entrySum(id, digests)) % 2 ** 32;
      take(id, digests);
    }
    cursor = next;
  } while (cursor !== '0');
  return seen.size === facts.size && (facts.sum === undefined || facts.sum === sum) ? facts : null;
}

function parseFacts(text: string): ChangeSetFacts | null {
  const [, size, sum, previous] = /^(\d+)(?: (\d+) (\d+))?$/.exec(text) ?? [];
  if (size === undefined) return null;
  return { size: Number(size), sum: numberOf(sum), previous: numberOf(previous) };
}

function numberOf(digits: string | undefined): number | undefined {
  return digits === undefined ? undefined : Number(digits);
}

/** Returns the first 32 bits of the SHA-1 of an id and its digests, with a space between. */
export function entrySum(id: string, digests: string): number {
  return Number.parseInt(hash('sha1', `${id} ${digests}`).slice(0, 8), 16);
}
