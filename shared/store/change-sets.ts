// A change set: the SHA-1 of each changed record before and after a version, by id; and facts that reveal an incomplete set.

import { hash } from 'node:crypto';
import type { Redis } from '../redis/connections.ts';
import { isWrongType } from '../redis/failures.ts';

/** The field of a change set that holds its facts. */
export const factsField = '#';

/** How many fields of a change set one command reads. */
const fieldsAtOnce = 1_000;

/** The facts of a change set. */
export interface ChangeSetFacts {
  /** The number of its ids. */
  readonly size: number;
  /** The sum of all its entries, modulo 2^32. */
  readonly sum: number;
  /** The previous version, against which it was computed. */
  readonly previous: number;
}

/** Returns the facts in stored form. */
export function changeSetText({ size, sum, previous }: ChangeSetFacts): string {
  return [size, sum, previous].join(' ');
}

/**
 * Reads a change set in parts, since it may be large.
 * @param onEntry called with each id and the digests of its record before and after; `-` if there is none
 * @returns its facts; `null` if the set is missing or damaged
 */
export async function readChangeSet(
  redis: Redis,
  key: string,
  onEntry: (id: string, digests: string) => void = () => undefined,
): Promise<ChangeSetFacts | null> {
  try {
    const facts = parseFacts(await redis.hget(key, factsField));
    const seen = new Set<number>();
    let sum = 0;
    let cursor = facts ? '' : '0';
    while (cursor !== '0') {
      const [next, fields] = await redis.hscan(key, cursor || '0', 'COUNT', fieldsAtOnce);
      for (let i = 0; i < fields.length; i += 2) {
        const [id, digests] = [fields[i] as string, fields[i + 1] as string];
        if (id === factsField || seen.has(Number(id))) continue; // A scan may return a field twice.
        seen.add(Number(id));
        sum = (sum + entrySum(id, digests)) % 2 ** 32;
        onEntry(id, digests);
      }
      cursor = next;
    }
    return facts && seen.size === facts.size && sum === facts.sum ? facts : null;
  } catch (error) {
    if (isWrongType(error)) return null;
    throw error;
  }
}

function parseFacts(text: string | null): ChangeSetFacts | null {
  const [, size, sum, previous] = /^(\d+) (\d+) (\d+)$/.exec(text ?? '') ?? [];
  return size === undefined ? null : { size: Number(size), sum: Number(sum), previous: Number(previous) };
}

/** Returns the first 32 bits of the SHA-1 of an id and its digests, with a space between. */
export function entrySum(id: string, digests: string): number {
  return Number.parseInt(hash('sha1', `${id} ${digests}`).slice(0, 8), 16);
}
