// Builds every Redis key; SCHEMA.md describes their values.
// Keys of a collection share a hash tag, so that its transactions stay on one shard of a Cluster.

import type { Collection, ServedCollection } from '../collections/define.ts';

/** The keys of a content: its records, their order, and its search index. */
export interface ContentKeys {
  readonly records: string;
  readonly order: string;
  readonly blocks: string;
  /** The index of words. */
  readonly words: string;
  /** Sorted sets by prefix search. */
  readonly prefix: Readonly<Record<string, string>>;
  /** Hashes by exact search. */
  readonly exact: Readonly<Record<string, string>>;
}

/**
 * The name of a content in its keys: the number of its first version, with `.1` if it was rebuilt; or the name of a dry run,
 * which is never a version number.
 */
export type ContentName = number | string;

/** The keys of one part of a version: the collection's own records, or those of a derived collection. */
export interface PartKeys {
  content(name: ContentName): ContentKeys;
  /** The changes of a version against the previous one. */
  changeSet(name: ContentName): string;
}

/** The keys of an imported collection. */
export interface CollectionKeys extends PartKeys {
  readonly next: string;
  readonly live: string;
  readonly versions: string;
  readonly versionDocuments: string;
  readonly staged: string;
  readonly candidate: string;
  readonly lock: string;
  readonly progress: string;
  readonly imports: string;
  readonly rejects: string;
  readonly pause: string;
  readonly rolledBack: string;
  readonly damaged: string;
  readonly checked: string;
  readonly validators: string;
  readonly changeSets: string;
  /** The channel that announces new live versions. */
  readonly announcements: string;
  /** Keys of a collection derived from this one. */
  derived(collection: string): PartKeys;
  /** All parts of a version: its own, then those of derived collections. */
  readonly parts: readonly PartKeys[];
}

/** Returns the keys of an imported collection under a prefix (setting `KEY_PREFIX`). */
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
    candidate: `${base}:candidate`,
    lock: `${base}:lock`,
    progress: `${base}:progress`,
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

/** Returns the keys of a content in all parts of the collection. */
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

/** Returns the keys of a served collection's versions, and of its own part. */
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
      words: `${base}:${name}:words`,
      prefix: searchKeys(prefixSearches, `${base}:${name}`),
      exact: searchKeys(exactSearches, `${base}:${name}`),
    })),
    changeSet: (name) => `${base}:${name}:changes`,
  };
}

/** Remembers the last result: nearly all reads use the same content. */
function rememberingLast(make: (name: ContentName) => ContentKeys): (name: ContentName) => ContentKeys {
  let last: { name: ContentName; keys: ContentKeys } | undefined;
  return (name) => {
    if (last?.name !== name) last = { name, keys: make(name) };
    return last.keys;
  };
}

/** The keys of API keys: one hash with all of them, and one with their last use. */
export interface ApiKeyKeys {
  readonly keys: string;
  readonly lastUse: string;
  /** The channel that announces revoked and rotated keys. */
  readonly announcements: string;
}

/** Returns the key of an API key's rate counter. */
export function rateKey(prefix: string, id: string): string {
  return `${prefix}:{rate:${id}}`;
}

/** Returns the key of the heartbeats of importers. */
export function heartbeatsKey(prefix: string): string {
  return `${prefix}:{importers}:heartbeats`;
}

/** Each key has its own slot in a Cluster. */
export function apiKeyKeys(prefix: string): ApiKeyKeys {
  return {
    keys: `${prefix}:keys`,
    lastUse: `${prefix}:key-use`,
    announcements: `${prefix}:key-changes`,
  };
}
