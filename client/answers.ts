// What medref answers with, as types: pages, versions, changes.

import type { Digest } from './digests.ts';

export interface Link {
  readonly href: string;
}

/** The links of a page. */
export type Links = Readonly<
  Record<'self' | 'first' | 'last', Link> & Partial<Record<'next' | 'prev', Link>>
>;

export interface Meta {
  readonly totalCount: number;
  readonly pageCount: number;
  readonly currentPage: number;
  readonly perPage: number;
}

/** A page of a list. */
export interface Page<Item> {
  readonly data: readonly Item[];
  readonly links: Links;
  readonly meta: Meta;
  readonly version: number;
}

/** The body of a list, as it is sent. */
export interface ListBody<Item> {
  readonly data: readonly Item[];
  readonly _links: Links;
  readonly _meta: Meta;
}

/** A version that is kept. */
export interface Version {
  readonly version: number;
  readonly publishedAt: string;
  readonly totalCount: number;
  readonly live: boolean;
  readonly digest: Digest;
}

/** What became of an id between two versions; `record` is as it is at the later one. */
export type Change<Item> =
  | { readonly id: number; readonly change: 'added' | 'changed'; readonly record: Item }
  | { readonly id: number; readonly change: 'removed'; readonly record?: undefined };

/** Items that come while they are read. They can be read once. */
export interface Versioned<Item> extends AsyncIterable<Item> {
  /** The version that they are of; of changes the one at which they end. Known from the first item, or the end, on. */
  readonly version: number | undefined;
  /** The digests of this version; a search has none. */
  readonly digest: Digest | undefined;
}

/** What is known of what is read. */
export interface ReadVersion {
  version: number | undefined;
  digest: Digest | undefined;
}
