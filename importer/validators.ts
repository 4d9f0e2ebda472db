// The validators by which an upstream can say that its list has not changed, stored with the version made of that list.

import { createHash } from 'node:crypto';
import type { Collection } from '../shared/collections/define.ts';
import type { Redis } from '../shared/redis/connections.ts';
import type { CollectionKeys } from '../shared/store/keys.ts';
import type { Validators } from './upstream/body.ts';

/** Where a list comes from, and what is made of it. */
export interface ListSource {
  readonly url: URL;
  readonly collection: Collection;
}

interface StoredValidators extends Validators {
  /** Digest of the URL they came from, which may hold a secret, and of what records were made of it then. */
  readonly source: string;
}

/** Reads the validators of the last list, or `null` if they are of another URL or of other rules. */
export async function readValidators(
  redis: Redis,
  keys: CollectionKeys,
  source: ListSource,
): Promise<Validators | null> {
  const text = await redis.get(keys.validators);
  if (text === null) return null;
  const { source: from, etag, lastModified } = JSON.parse(text) as StoredValidators;
  return from === digestOf(source) ? { etag, lastModified } : null;
}

/** Returns validators as they are stored with a version; `null` if upstream gave none. */
export function storedValidators(validators: Validators | null, source: ListSource): string | null {
  if (!validators?.etag && !validators?.lastModified) return null;
  const stored: StoredValidators = { source: digestOf(source), ...validators };
  return JSON.stringify(stored);
}

/** If the rules of records change, the same list makes another content, so all of it is read again. */
function digestOf({ url, collection }: ListSource): string {
  return createHash('sha256').update(`${collection.revision} ${url.href}`).digest('hex');
}
