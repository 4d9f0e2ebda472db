// A change set: by id, the SHA-1 of a record before and after a version; and facts by which a set that has lost a part is noticed.

import { hash } from 'node:crypto';
import type { Redis } from '../redis/connections.ts';
import { isWrongType } from '../redis/failures.ts';

/** The field of a change set that holds its facts. */
export const factsField = '#';

/** How many fields of a change set are read with one command. */
const fieldsAtOnce = 1_000;

/** What a change set says of itself. */
export interface ChangeSetFacts {
  /** How many ids it has. */
  readonly size: number;
  /** The sum of all its entries, modulo 2^32. */
  readonly sum: number;
  /** The version before, which it was compared with. */
  readonly previous: number;
}

/** Returns the facts as they are stored. */
export function changeSetText({ size, sum, previous }: ChangeSetFacts): string {
  return [size, sum, previous].join(' ');
}

/**
 * Reads a change set in parts, since it may be large.
 * @param onEntry is given each id, with the digests of its record before and after, `-` if there is none
 * @returns its facts; `null` if the set is missing, or not as it was stored
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
