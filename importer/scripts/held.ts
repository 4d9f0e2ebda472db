// What every script needs: the keys of a collection, and the lock that its caller holds.

import type { CollectionKeys, ContentName } from '../../shared/store/keys.ts';

/** A collection under a lock. */
export interface Held {
  readonly keys: CollectionKeys;
  /** Of the lock. */
  readonly token: string;
}

/** A version that was begun under a lock: what is staged of it expires `lifetimeMs` after its last renewal. */
export interface BegunVersion extends Held {
  readonly name: ContentName;
  readonly lifetimeMs: number;
}

/** The caller's lock has expired or was taken over; nothing was written. */
export class LockLostError extends Error {
  constructor() {
    super(
      'The import lost its lock, so it may not write any more; another import may have started. Run it again.',
    );
  }
}

/** A script's reply, of which -1 says that the lock is not the caller's. @throws LockLostError */
export function heldReply(reply: unknown): unknown {
  if (reply === -1) throw new LockLostError();
  return reply;
}
