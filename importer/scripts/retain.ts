// retain.lua: kept versions are let go.

import type { Redis } from '../../shared/redis/connections.ts';
import type { ContentName } from '../../shared/store/keys.ts';
import { type Held, heldReply } from './held.ts';
import { contentKeys } from './key-lists.ts';
import { evaluate, loadScript } from './script.ts';

const script = loadScript('retain');

/** Lets go of kept versions; what they alone hold expires after a grace period. @throws LockLostError */
export async function retain(
  redis: Redis,
  { keys, token }: Held,
  leaving: { readonly versions: readonly number[]; readonly contents: readonly ContentName[] },
  graceMs: number,
): Promise<void> {
  const expiring = leaving.contents.flatMap((content) => contentKeys(keys, content));
  const touched = [keys.lock, keys.versions, keys.versionDocuments, keys.damaged, ...expiring];
  heldReply(await evaluate(redis, script, touched, [token, graceMs, JSON.stringify(leaving)]));
}
