// Every Redis key, built nowhere else; what each holds is in scripts/SCHEMA.md.
// Keys of a collection share a hash tag, so that its atomic steps are legal on one shard of a cluster.

/** The keys of one collection's content: the records of a version and their indexes. */
export interface ContentKeys {
  readonly records: string;
  readonly order: string;
}

/** The keys of one collection. */
export interface CollectionKeys {
  readonly next: string;
  readonly live: string;
  readonly versions: string;
  readonly versionDocuments: string;
  readonly staged: string;
  readonly lock: string;
  readonly imports: string;
  readonly rejects: string;
  /** Channel on which a new live version is announced. */
  readonly announcements: string;
  content(number: number): ContentKeys;
}

/** The keys of a collection under a key prefix (setting `KEY_PREFIX`). */
export function collectionKeys(prefix: string, collection: string): CollectionKeys {
  const base = `${prefix}:{${collection}}`;
  return {
    next: `${base}:next`,
    live: `${base}:live`,
    versions: `${base}:versions`,
    versionDocuments: `${base}:version-documents`,
    staged: `${base}:staged`,
    lock: `${base}:lock`,
    imports: `${base}:imports`,
    rejects: `${base}:rejects`,
    announcements: `${base}:published`,
    content: (number) => ({ records: `${base}:${number}:records`, order: `${base}:${number}:order` }),
  };
}

/** The keys that hold API keys: all of them in one hash, and when each was last used. */
export function apiKeyKeys(prefix: string): { readonly keys: string; readonly lastUse: string } {
  return { keys: `${prefix}:keys`, lastUse: `${prefix}:key-use` };
}
