// Every Redis key, built nowhere else; what each holds is in scripts/SCHEMA.md.
// Keys of a collection share a hash tag, so that its atomic steps are legal on one shard of a cluster.

/** The keys of one collection's content: the records of a version and their indexes. */
export interface ContentKeys {
  readonly records: string;
  readonly order: string;
}

/** What a content is staged under: the number of the version to be, or a name that never becomes one. */
export type ContentName = number | 'dry-run';

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
  readonly hold: string;
  readonly undone: string;
  readonly checked: string;
  readonly validators: string;
  readonly changeSets: string;
  /** Channel on which a new live version is announced. */
  readonly announcements: string;
  content(name: ContentName): ContentKeys;
  /** What a version changed against the one before it. */
  changeSet(name: ContentName): string;
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
    hold: `${base}:hold`,
    undone: `${base}:undone`,
    checked: `${base}:checked`,
    validators: `${base}:validators`,
    changeSets: `${base}:change-sets`,
    announcements: `${base}:published`,
    content: (name) => ({ records: `${base}:${name}:records`, order: `${base}:${name}:order` }),
    changeSet: (name) => `${base}:${name}:changes`,
  };
}

/** The keys that hold API keys: all of them in one hash, and when each was last used. */
export function apiKeyKeys(prefix: string): { readonly keys: string; readonly lastUse: string } {
  return { keys: `${prefix}:keys`, lastUse: `${prefix}:key-use` };
}
