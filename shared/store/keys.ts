// Every Redis key, built nowhere else; what each holds is in SCHEMA.md.
// Keys of a collection share a hash tag, so that its atomic steps are legal on one shard of a cluster.

import type { Collection, ServedCollection } from '../collections/define.ts';

/** The keys of a content: the records of a version, their order, and what they are found by. */
export interface ContentKeys {
  readonly records: string;
  readonly order: string;
  readonly blocks: string;
  /** Sorted sets, by the name of a prefix search. */
  readonly prefix: Readonly<Record<string, string>>;
  /** Hashes, by the name of an exact search. */
  readonly exact: Readonly<Record<string, string>>;
}

/**
 * Names the keys of a content: the number of the version it was first published as, or that with `.1` if it was rebuilt; or
 * the name of a dry run, which never becomes a version's.
 */
export type ContentName = number | string;

/** The keys of what each version has of its own: a collection's records, or those that are derived from them. */
export interface PartKeys {
  content(name: ContentName): ContentKeys;
  /** What a version changed against the one before it. */
  changeSet(name: ContentName): string;
}

/** The keys of one collection that is imported. */
export interface CollectionKeys extends PartKeys {
  readonly next: string;
  readonly live: string;
  readonly versions: string;
  readonly versionDocuments: string;
  readonly staged: string;
  readonly lock: string;
  readonly imports: string;
  readonly rejects: string;
  readonly pause: string;
  readonly rolledBack: string;
  readonly damaged: string;
  readonly checked: string;
  readonly validators: string;
  readonly changeSets: string;
  /** Channel on which a new live version is announced. */
  readonly announcements: string;
  /** The keys of a collection that is derived from this one. */
  derived(collection: string): PartKeys;
  /** All that a version has: its own part, then those that are derived. */
  readonly parts: readonly PartKeys[];
}

/** The keys of an imported collection under a key prefix (setting `KEY_PREFIX`). */
export function collectionKeys(
  prefix: string,
  collection: Pick<Collection, 'name' | 'derived' | 'prefixSearches' | 'exactSearches'>,
): CollectionKeys {
  const { derived } = collection;
  const base = `${prefix}:{${collection.name}}`;
  const own = partKeys(base, collection);
  const derivedKeys = (name: string) => {
    const found = derived.find((it) => it.collection.name === name)?.collection;
    return partKeys(`${base}:${name}`, found ?? { prefixSearches: {}, exactSearches: {} });
  };
  return {
    next: `${base}:next`,
    live: `${base}:live`,
    versions: `${base}:versions`,
    versionDocuments: `${base}:version-documents`,
    staged: `${base}:staged`,
    lock: `${base}:lock`,
    imports: `${base}:imports`,
    rejects: `${base}:rejects`,
    pause: `${base}:pause`,
    rolledBack: `${base}:rolled-back`,
    damaged: `${base}:damaged`,
    checked: `${base}:checked`,
    validators: `${base}:validators`,
    changeSets: `${base}:change-sets`,
    announcements: `${base}:published`,
    ...own,
    derived: derivedKeys,
    parts: [own, ...derived.map((it) => derivedKeys(it.collection.name))],
  };
}

/** Returns the keys of a content, over all parts of the collection. */
export function contentKeys(keys: CollectionKeys, name: ContentName): string[] {
  return keys.parts.flatMap((part) => allContentKeys(part.content(name)));
}

/** Returns the keys of the change sets of a version, one for each part. */
export function changeSetKeys(keys: CollectionKeys, name: ContentName): string[] {
  return keys.parts.map((part) => part.changeSet(name));
}

/** Returns all keys that an import stages under a name. */
export function stagedKeys(keys: CollectionKeys, name: ContentName): string[] {
  return [...contentKeys(keys, name), ...changeSetKeys(keys, name)];
}

/** The keys that a served collection's versions are found by, and those of its own part of them. */
export function servedKeys(
  prefix: string,
  { collection, source }: ServedCollection,
): { readonly keys: CollectionKeys; readonly part: PartKeys } {
  const keys = collectionKeys(prefix, source);
  return { keys, part: collection === source ? keys : keys.derived(collection.name) };
}

/** Returns all keys of a content. */
export function allContentKeys({ prefix, exact, ...others }: ContentKeys): string[] {
  return [...Object.values(others), ...Object.values(prefix), ...Object.values(exact)];
}

function searchKeys(searches: object, base: string): Record<string, string> {
  return Object.fromEntries(Object.keys(searches).map((search) => [search, `${base}:by-${search}`]));
}

function partKeys(
  base: string,
  { prefixSearches, exactSearches }: Pick<Collection, 'prefixSearches' | 'exactSearches'>,
): PartKeys {
  return {
    content: rememberingLast((name) => ({
      records: `${base}:${name}:records`,
      order: `${base}:${name}:order`,
      blocks: `${base}:${name}:blocks`,
      prefix: searchKeys(prefixSearches, `${base}:${name}`),
      exact: searchKeys(exactSearches, `${base}:${name}`),
    })),
    changeSet: (name) => `${base}:${name}:changes`,
  };
}

/** Nearly all reads are of the same content as the one before. */
function rememberingLast(make: (name: ContentName) => ContentKeys): (name: ContentName) => ContentKeys {
  let last: { name: ContentName; keys: ContentKeys } | undefined;
  return (name) => {
    if (last?.name !== name) last = { name, keys: make(name) };
    return last.keys;
  };
}

/** The keys that hold API keys: all of them in one hash, and when each was last used. */
export interface ApiKeyKeys {
  readonly keys: string;
  readonly lastUse: string;
  /** Channel on which a key is announced that was revoked or rotated. */
  readonly announcements: string;
}

/** The bucket by which the rate of an API key is kept. */
export function rateKey(prefix: string, id: string): string {
  return `${prefix}:{rate:${id}}`;
}

/** No two of them are in one slot of a cluster: the names of the first two are older than that thought. */
export function apiKeyKeys(prefix: string): ApiKeyKeys {
  return {
    keys: `${prefix}:keys`,
    lastUse: `${prefix}:key-use`,
    announcements: `${prefix}:key-changes`,
  };
}
