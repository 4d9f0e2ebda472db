// Lists as a client reads them: the types of records, pages, and NDJSON whose digest is verified.

import type { Connection, Patience, Query } from './connection.ts';
import { base64, type Digest, startSha256 } from './digests.ts';
import { broken, MedrefError, mismatch, notMedref, notTheVersion } from './medref-error.ts';

/** An id with a name. */
export interface Named {
  id: number;
  name: string;
}

/** A current or former barcode of a product. */
export interface Barcode {
  /** 12 or 13 digits. */
  barcode: string;
  /** Status in the national list; `null` if unlisted. */
  skrsStatus: string | null;
}

/** A medicinal product. */
export interface Product {
  product: Named;
  drug: Named;
  drugform: Named;
  barcodes: Barcode[];
  /** `false` is only a flag: the product is still listed and found. */
  published: boolean;
}

/** A drug; each appears once, however many products have it. */
export interface Drug {
  drug: Named;
}

/** A company. */
export interface Company {
  id: number;
  name: string;
  officialName: string;
  /** `""` if there is none. */
  website: string;
  fax: string | null;
  phone: string | null;
  email: string | null;
  address: string | null;
  city: string | null;
  district: string | null;
}

/** A record of any collection. */
export type AnyRecord = Product | Drug | Company;

/** Returns the id of a record of any collection. */
export function idOf(record: AnyRecord): number {
  const { product, drug, id } = record as Partial<Product & Company>;
  return (product ?? drug)?.id ?? (id as number);
}

/** A list to read page by page. */
export interface Walked extends Patience {
  readonly query: Query;
  /** Receives the version of the pages after the first one. */
  readonly read: ReadVersion;
  readonly isKept?: boolean;
  /** Whether each page may be of another version, as for the list of versions; otherwise all are of the first one's version. */
  readonly isOfAll?: boolean;
  /** Seconds that the service may wait before the first page. */
  readonly wait?: number | undefined;
}

/** Reads all items of a list. @throws MedrefError with 410 if its version expires meanwhile */
export async function* readPages<Item>(
  connection: Connection,
  path: string,
  { query, read, wait, isOfAll, ...patience }: Walked,
): AsyncGenerator<Item, void, undefined> {
  let count = 0;
  for (let page = 1; ; page += 1) {
    const first = page === 1;
    const asked = first ? { ...query, wait } : { ...query, version: isOfAll ? undefined : read.version };
    const { version, digest, body } = await connection.json<ListBody<Item>>(path, {
      ...{ query: { ...asked, page, 'per-page': 200 }, wait: first ? wait : 0, ...patience },
    });
    read.version = version;
    read.digest = digest;
    for (const item of body.data) {
      connection.requireNotEnded(patience);
      yield item;
    }
    count += body.data.length;
    if (body._links.next) continue;
    if (count === body._meta.totalCount) return;
    throw notMedref(200, path, `has ${count} of ${body._meta.totalCount} items`);
  }
}

const lineFeed = 10;
/** The longest line, in characters: a record has at most 256 KiB. */
const longestLine = 1024 * 1024;

/**
 * Reads the lines of an NDJSON export in bounded memory.
 * @param read the requested version, if any; receives the version of the export
 * @throws MedrefError with the reason `DigestMismatch` in place of the last line if the digest does not match
 */
export async function* readLines(
  connection: Connection,
  collection: string,
  { read, ...patience }: Patience & { readonly read: ReadVersion },
): AsyncGenerator<string> {
  const digest = startSha256();
  const decoder = new TextDecoder('utf-8', { ignoreBOM: true });
  /** The number of lines in the digest, which are yielded next. */
  let count = 0;
  let last: string | undefined;
  for (let tries = 1; ; tries += 1) {
    try {
      const asked = { read, skip: count, ...patience };
      for await (const whole of wholeLines(connection, collection, asked)) {
        digest.update(whole);
        const lines = decoder.decode(whole).split('\n');
        lines.pop();
        count += lines.length;
        tries = 0; // Progress resets the attempts.
        for (const line of lines) {
          connection.requireNotEnded(patience);
          if (last !== undefined) yield last;
          last = line;
        }
      }
      break;
    } catch (error) {
      await connection.recover(error, tries, patience);
    }
  }
  if (base64(digest.digest()) !== read.digest?.list) throw notTheVersion(collection, read.version);
  if (last !== undefined) yield last;
}

/** Parses a line. @throws MedrefError if it was damaged in transit */
export function recordIn<Item>(line: string): Item {
  try {
    return JSON.parse(line);
  } catch {
    throw new MedrefError(200, mismatch, 'A line is not a record: it was damaged in transit.');
  }
}

interface Wanted extends Patience {
  readonly read: ReadVersion;
  /** How many lines were already received. */
  readonly skip: number;
}

/** Reads the export once, in pieces that end with whole lines. */
async function* wholeLines(
  connection: Connection,
  collection: string,
  { read, skip, ...patience }: Wanted,
): AsyncGenerator<Uint8Array> {
  const accept = 'application/x-ndjson';
  const query = { version: read.version };
  const { exchange, url, version, digest } = await connection.open(collection, {
    accept,
    query,
    ...patience,
  });
  try {
    if (!digest) throw notMedref(200, url, 'has no Medref-Digest, which verifies it');
    read.version = version;
    read.digest = digest;
    let rest = new Uint8Array(0);
    for await (const chunk of exchange.chunks()) {
      const bytes = joined(rest, chunk);
      const end = bytes.lastIndexOf(lineFeed) + 1;
      rest = bytes.subarray(end);
      if (rest.length > longestLine) throw notMedref(200, url, 'has a line longer than any record');
      let from = 0;
      for (; skip > 0 && from < end; skip -= 1) from = bytes.indexOf(lineFeed, from) + 1;
      if (from < end) yield bytes.subarray(from, end);
    }
    if (rest.length > 0) throw broken(url, 'its last line has no end');
  } finally {
    exchange.end();
  }
}

function joined(rest: Uint8Array<ArrayBuffer>, chunk: Uint8Array): Uint8Array<ArrayBuffer> {
  const bytes = new Uint8Array(rest.length + chunk.length);
  bytes.set(rest);
  bytes.set(chunk, rest.length);
  return bytes;
}

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

/** The body of a list. */
export interface ListBody<Item> {
  readonly data: readonly Item[];
  readonly _links: Links;
  readonly _meta: Meta;
}

/** A kept version. */
export interface Version {
  readonly version: number;
  readonly publishedAt: string;
  readonly totalCount: number;
  readonly live: boolean;
  readonly digest: Digest;
}

/** The change of an id between two versions; `record` is the later one. */
export type Change<Item> =
  | { readonly id: number; readonly change: 'added' | 'changed'; readonly record: Item }
  | { readonly id: number; readonly change: 'removed'; readonly record?: undefined };

/** Items that are read while you iterate. They can be read once. */
export interface Versioned<Item> extends AsyncIterable<Item> {
  /** Their version; for changes, the version at which they end. Known from the first item, or the end, on. */
  readonly version: number | undefined;
  /** The digests of this version; searches have none. */
  readonly digest: Digest | undefined;
}

/** The known facts of a read version. */
export interface ReadVersion {
  version: number | undefined;
  digest: Digest | undefined;
}
