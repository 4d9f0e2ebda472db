// Lists as a client reads them: the types of records, pages, and NDJSON whose digest is verified.

import type { Connection, Patience, Query } from './connection.ts';
import { base64, type Digest, startSha256 } from './digests.ts';
import { broken, MedrefError, mismatch, notMedref, notTheVersion } from './medref-error.ts';

/** An id with a name. */
export interface Named {
  /** From 1 to 2^53−1; it stays the same from version to version. */
  id: number;
  /** Exactly as in the source; at least one visible character. */
  name: string;
}

/** A current or former barcode of a product. */
export interface Barcode {
  /** 12 or 13 digits. A product may have several: its barcodes change over the years. */
  barcode: string;
  /** Status in the national coding server: `Aktif`, `Pasif`, or another text; `null` if the barcode is not listed there. */
  skrsStatus: string | null;
}

/** A medicinal product. */
export interface Product {
  /** The product; its name is composed of drug, form and package. */
  product: Named;
  /** The drug that it is a product of. */
  drug: Named;
  /** Its strength and form, as text. */
  drugform: Named;
  /** Its current and former barcodes; some products have none. */
  barcodes: Barcode[];
  /**
   * `false`: not actively published, because the company asked for it, because of a regulation, or because the entry is an error.
   * The product is listed and found like any other.
   */
  published: boolean;
}

/** A drug; each appears once, however many products have it. */
export interface Drug {
  /** Its id and name. */
  drug: Named;
}

/** A company. Nothing links it to its products. */
export interface Company {
  /** From 1 to 2^53−1. */
  id: number;
  /** The usual name. */
  name: string;
  /** The registered name; may be `""`. */
  officialName: string;
  /** `""` if there is none. */
  website: string;
  /** `null` if unknown, as the members below. */
  fax: string | null;
  /** Telephone number, as text. */
  phone: string | null;
  /** Email address, as text. */
  email: string | null;
  /** Street and number. */
  address: string | null;
  /** City or province. */
  city: string | null;
  /** Part of the city. */
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
  /** Parameters of each page. */
  readonly query: Query;
  /** Receives the version of the pages after the first one. */
  readonly read: ReadVersion;
  /** Whether pages are cached. */
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

/** An export to read. */
export interface Exported extends Patience {
  /** Receives the version. */
  readonly read: ReadVersion;
}

/**
 * Reads the lines of an NDJSON export in bounded memory.
 * @param read the requested version, if any; receives the version of the export
 * @throws MedrefError with the reason `DigestMismatch` in place of the last line if the digest does not match
 */
export async function* readLines(
  connection: Connection,
  collection: string,
  { read, ...patience }: Exported,
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
  connection.verified(collection, { version: read.version, set: read.digest?.set });
}

/** Parses a line. @throws MedrefError if it was damaged in transit */
export function recordIn<Item>(line: string): Item {
  try {
    return JSON.parse(line);
  } catch {
    throw new MedrefError(200, mismatch, 'A line is not a record: it was damaged in transit.');
  }
}

interface Wanted extends Exported {
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

/** A link. */
export interface Link {
  /** An absolute URL. */
  readonly href: string;
}

/** The links of a page. */
export type Links = Readonly<
  Record<'self' | 'first' | 'last', Link> & Partial<Record<'next' | 'prev', Link>>
>;

/** The numbers of a page. */
export interface Meta {
  /** Records of all pages. */
  readonly totalCount: number;
  /** 0 if there are no records. */
  readonly pageCount: number;
  /** The requested page, from 1; it may be past the end. */
  readonly currentPage: number;
  /** Records per page, at most 200. */
  readonly perPage: number;
}

/** A page of a list. */
export interface Page<Item> {
  /** The records; none past the end. */
  readonly data: readonly Item[];
  /** Links to this page, the first, last, next and previous one. */
  readonly links: Links;
  /** Counts of records and pages. */
  readonly meta: Meta;
  /** The version that was read. */
  readonly version: number;
}

/** The body of a list. */
export interface ListBody<Item> {
  /** The items of the page. */
  readonly data: readonly Item[];
  /** Links to pages. */
  readonly _links: Links;
  /** Counts. */
  readonly _meta: Meta;
}

/** A kept version. */
export interface Version {
  /** Its number: the time at which its import began, `YYYYMMDDhhmmss`, or a higher number. */
  readonly version: number;
  /** ISO 8601. */
  readonly publishedAt: string;
  /** Its records. */
  readonly totalCount: number;
  /** Whether requests without a version read this one. */
  readonly live: boolean;
  /** Its digests, which a copy of it must have. */
  readonly digest: Digest;
}

/** The change of an id between two versions. */
export type Change<Item> =
  | {
      /** The id of the record. */
      readonly id: number;
      /** Whether the earlier version has the id. */
      readonly change: 'added' | 'changed';
      /** The record of the later version. */
      readonly record: Item;
    }
  | {
      /** The id of the record. */
      readonly id: number;
      /** The later version does not have the id. */
      readonly change: 'removed';
      /** Absent. */
      readonly record?: undefined;
    };

/** Items that are read while you iterate. They can be read once. */
export interface Versioned<Item> extends AsyncIterable<Item> {
  /** Their version; for changes, the version at which they end. Known from the first item, or the end, on. */
  readonly version: number | undefined;
  /** The digests of this version; searches have none. */
  readonly digest: Digest | undefined;
}

/** The known facts of a read version. */
export interface ReadVersion {
  /** Its number; `undefined` until it is known. */
  version: number | undefined;
  /** Its digests; `undefined` until they are known, and for searches. */
  digest: Digest | undefined;
}
