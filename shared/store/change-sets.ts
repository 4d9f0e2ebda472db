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
  /** When that version was published, in ms since 1970. */
  readonly previousMs: number;
}

/** Returns the facts in stored form. */
export function changeSetText({ size, sum, previous, previousMs }: ChangeSetFacts): string {
  return [size, sum, previous, previousMs].join(' ');
}

/**
 * Reads a change set in parts, since it may be large.
 * @param onEntry called with each id and the digests of its record before and after; `-` if there is none
 * @param known its facts, if they are not stored in it: the version is not published yet
 * @returns its facts; `null` if the set is missing or damaged
 */
export async function readChangeSet(
  redis: Redis,
  key: string,
  onEntry: (id: string, digests: string) => void = () => undefined,
  known?: ChangeSetFacts,
): Promise<ChangeSetFacts | null> {
  try {
    const facts = known ?? parseFacts(await redis.hget(key, factsField));
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

/** Parses the facts of a change set; `null` if they are missing or damaged. */
export function parseFacts(text: string | null): ChangeSetFacts | null {
  const numbers = /^\d+ \d+ \d+ \d+$/.test(text ?? '') ? (text as string).split(' ').map(Number) : [];
  const [size, sum = 0, previous = 0, previousMs = 0] = numbers;
  return size === undefined ? null : { size, sum, previous, previousMs };
}

/** Returns the first 32 bits of the SHA-1 of an id and its digests, with a space between. */
export function entrySum(id: string, digests: string): number {
  return Number.parseInt(hash('sha1', `${id} ${digests}`).slice(0, 8), 16);
}
