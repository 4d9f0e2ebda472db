// compare.lua: what differs between a range of one content and another content.

import type { Redis } from '../../shared/redis/connections.ts';
import type { ContentName, PartKeys } from '../../shared/store/keys.ts';
import { type BegunVersion, heldReply } from '../../shared/store/scripts.ts';
import { evaluate, loadScript } from './script.ts';

const script = loadScript('compare');

/** How many records are compared in one step, in half a millisecond where all differ: Redis answers no one meanwhile. */
const comparedAtOnce = 50;

/** A content that is compared. */
export interface ComparedContent {
  readonly name: ContentName;
  /** How many bytes stand behind each of its records. */
  readonly checkLength: number;
}

/** A step of a comparison: which content of a part is walked, and where, against which other one. */
export interface Comparison {
  readonly part: PartKeys;
  readonly walked: ComparedContent;
  readonly other: ComparedContent;
  /** Whether the walked content is the newer one, or the older one. */
  readonly walks: 'after' | 'before';
  /** Number of the range of the order that is walked, from 0. */
  readonly range: number;
}

/**
 * Compares a range of one content with another content, and writes what differs into the change set of a begun version.
 * @returns how many ids are only in the walked content, how many records differ (told where `after` is walked), and the
 * sum of what was written
 * @throws LockLostError
 */
export async function compare(
  redis: Redis,
  { keys, token, name, lifetimeMs }: BegunVersion,
  { part, walked, other, walks, range }: Comparison,
): Promise<{ alone: number; different: number; sum: number }> {
  const { order, records } = part.content(walked.name);
  const touched = [keys.lock, keys.staged, order, records, part.content(other.name).records];
  const args = [token, name, lifetimeMs, range, walks, walked.checkLength, other.checkLength];
  const found = { alone: 0, different: 0, sum: 0 };
  for (let from = 0, size = 1; from < size; from += comparedAtOnce) {
    const reply = await evaluate(
      redis,
      script,
      [...touched, part.changeSet(name)],
      [...args, from, comparedAtOnce],
    );
    const [alone, different, sum, ids] = heldReply(reply) as [number, number, number, number];
    found.alone += alone;
    found.different += different;
    found.sum = (found.sum + sum) % 2 ** 32;
    size = ids;
  }
  return found;
}
