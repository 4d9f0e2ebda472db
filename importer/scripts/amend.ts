// amend.lua: the report of a publication in the history, with what was found after it.

import type { Redis } from '../../shared/redis/connections.ts';
import { type Held, heldReply } from './held.ts';
import { evaluate, loadScript } from './script.ts';

const script = loadScript('amend');

/** Imports by hand that find the lock held write into the history beside its holder. */
const lookedAt = 10;

/** JSON texts of a report: as it was written, and as it is to be. */
export interface Amendment {
  readonly from: string;
  readonly to: string;
}

/** Writes a report of the history anew; one that is not there any more is left. @throws LockLostError */
export async function amend(redis: Redis, { keys, token }: Held, { from, to }: Amendment): Promise<void> {
  heldReply(await evaluate(redis, script, [keys.lock, keys.imports], [token, from, to, lookedAt]));
}
