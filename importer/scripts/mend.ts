// mend.lua: which versions there are, written anew.

import type { Redis } from '../../shared/redis/connections.ts';
import { type Held, heldReply } from './held.ts';
import { evaluate, loadScript } from './script.ts';

const script = loadScript('mend');

/** What is written, and what is dropped. */
export interface Mending {
  /** JSON text of the live version's document; `''` for none. */
  readonly live: string;
  /** JSON texts of the kept versions' documents, by number. */
  readonly documents: ReadonlyMap<number, string>;
  /** Further keys. */
  readonly dropped: readonly string[];
}

/** Writes pointer and kept versions anew, and drops keys. @throws LockLostError */
export async function mend(
  redis: Redis,
  { keys, token }: Held,
  { live, documents, dropped }: Mending,
): Promise<void> {
  const written = [keys.lock, keys.next, keys.live, keys.versions, keys.versionDocuments, ...dropped];
  heldReply(await evaluate(redis, script, written, [token, live, ...[...documents].flat()]));
}
