// Lists as a client reads them: the types of records, pages, and NDJSON whose digest is verified.

import type { Connection, Patience, Query } from './connection.ts';
import { base64, type Digest, startSha256 } from './digests.ts';
import { broken, MedrefError, mismatch, notMedref, notTheVersion } from './medref-error.ts';

/** Something that a record names. */
export interface Named {
  id: number;
  name: string;
}

/** A barcode that a product has or had. */
export interface Barcode {
  /** 12 or 13 digits. */
  barcode: string;
  /** Status in the national list; `null` when unlisted. */
  skrsStatus: string | null;
}

/** A medicinal product. */
export interface Product {
  product: Named;
  drug: Named;
  drugform: Named;
  barcodes: Barcode[];
  /** `false` is only a flag: the product is listed and found like any other. */
  published: boolean;
}

/** A drug: each one of all products once. */
export interface Drug {
  drug: Named;
}

/** A company. */
export interface Company {
  id: number;
  name: string;
  officialName: string;
  /** `""` when there is none. */
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

/** The id of a record, whatever it is a record of. */
export function idOf(record: AnyRecord): number {
  const { product, drug, id } = record as Partial<Product & Company>;
  return (product ?? drug)?.id ?? (id as number);
}

/** The list of which the pages are read. */
export interface Walked extends Patience {
  readonly query: Query;
  /** Says which version the pages are of, once the first one came. */
  readonly read: ReadVersion;
  readonly isKept?: boolean;
  /** A list of all versions is of none, so that each page is of when it is read; else all are of that of the first one. */
  readonly isOfAll?: boolean;
  /** For how many seconds the service may wait before it gives the first page. */
  readonly wait?: number | undefined;
}

/** Reads all items of a list. @throws MedrefError with 410 where its version is let go meanwhile */
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
    yield* body.data;
    count += body.data.length;
    if (body._links.next) continue;
    if (count === body._meta.totalCount) return;
    throw notMedref(200, path, `has ${count} of ${body._meta.totalCount} items`);
  }
}

const lineFeed = 10;
/** How long a line may be: a record has 256 KiB at most. */
const longestLine = 1024 * 1024;

/**
 * Reads the lines of a list, in bounded memory.
 * @param read the version that is asked for, if any; says afterwards which one it is
 * @throws MedrefError named `DigestMismatch` in the place of the last line where the lines are not the version
 */
export async function* readLines(
  connection: Connection,
  collection: string,
  { read, ...patience }: Patience & { readonly read: ReadVersion },
): AsyncGenerator<string> {
  const digest = startSha256();
  const decoder = new TextDecoder('utf-8', { ignoreBOM: true });
  /** How many lines are in the digest, and will be given. */
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
        tries = 0; // What goes on is not given up.
        for (const line of lines) {
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

/** The record of a line. @throws MedrefError where the line was spoilt on its way */
export function recordIn<Item>(line: string): Item {
  try {
    return JSON.parse(line);
  } catch {
    throw new MedrefError(200, mismatch, 'A line came that is no record: it was spoilt on its way.');
  }
}

interface Wanted extends Patience {
  readonly read: ReadVersion;
  /** How many lines came before. */
  readonly skip: number;
}

/** One try: bytes that end at the ends of lines. */
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
    if (!digest) throw notMedref(200, url, 'came without Medref-Digest, by which it is proven');
    read.version = version;
    read.digest = digest;
    let rest = new Uint8Array(0);
    for await (const chunk of exchange.chunks()) {
      const bytes = joined(rest, chunk);
      const end = bytes.lastIndexOf(lineFeed) + 1;
      rest = bytes.subarray(end);
      if (rest.length > longestLine) throw notMedref(200, url, 'has a line that no record can have');
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
