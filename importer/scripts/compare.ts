// compare.lua: what differs between a range of one content and another content.

import type { ContentName, PartKeys } from '../../shared/keys.ts';
import type { Redis } from '../../shared/redis/connections.ts';
import { type BegunVersion, heldReply } from './held.ts';
import { evaluate, loadScript } from './script.ts';

const script = loadScript('compare');

/** A step of a comparison: which content of a part is walked, and where, against which other one. */
export interface Comparison {
  readonly part: PartKeys;
  readonly walked: ContentName;
  readonly other: ContentName;
  /** Whether the walked content is the newer one, or the older one. */
  readonly walks: 'after' | 'before';
  /** Number of the range of the order that is walked, from 0. */
  readonly range: number;
}

/**
 * Compares a range of one content with another content, and writes what differs into the change set of a begun version.
 * @returns how many ids are only in the walked content, and how many records differ (told where `after` is walked)
 * @throws LockLostError
 */
export async function compare(
  redis: Redis,
  { keys, token, name, lifetimeMs }: BegunVersion,
  { part, walked, other, walks, range }: Comparison,
): Promise<{ alone: number; different: number }> {
  const { order, records } = part.content(walked);
  const reply = await evaluate(
    redis,
    script,
    [keys.lock, keys.staged, order, records, part.content(other).records, part.changeSet(name)],
    [token, name, lifetimeMs, range, walks],
  );
  const [alone, different] = heldReply(reply) as [number, number];
  return { alone, different };
}
