// stage-pages.lua: the search index, by pages.

import type { Redis } from '../../shared/redis/connections.ts';
import type { PartKeys } from '../../shared/store/keys.ts';
import { type BegunVersion, heldReply } from '../../shared/store/scripts.ts';
import { evaluate, loadScript } from './script.ts';

const script = loadScript('stage-pages');

/** A page of a search index. */
export interface StagedPage {
  /** From 0. */
  readonly number: number;
  /** As in search-page.ts. */
  readonly stored: Buffer;
  /** Its first entry. */
  readonly fence: Buffer;
}

/** Stages pages of the search index of a part. @throws LockLostError */
export async function stagePages(
  redis: Redis,
  { keys, token, name, lifetimeMs }: BegunVersion,
  part: PartKeys,
  pages: readonly StagedPage[],
): Promise<void> {
  const { entries, fences } = part.content(name);
  const fields = pages.flatMap(({ number, stored, fence }) => [number, stored, fence]);
  const held = [keys.lock, keys.staged, entries, fences];
  heldReply(await evaluate(redis, script, held, [token, name, lifetimeMs, ...fields]));
}
