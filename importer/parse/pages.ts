// In: the upstream's URL. Out: its records in order, over all pages, in batches; at the end, what the walk learned.
// Nothing is repaired: what is not a list of records ends the walk with an UpstreamError.

import { isDeepStrictEqual } from 'node:util';
import { counted } from '../../shared/figures.ts';
import { shortened } from '../../shared/shortened.ts';
import type { Arrival, UpstreamDocument, Validators } from '../upstream/body.ts';
import { maxUrlLength, namedUrl, quoted, UpstreamError, urlText } from '../upstream/error.ts';
import type { Upstream } from '../upstream/upstream.ts';
import { createRecordParser, type Envelope, type SourceRecord, UnreadableJson } from './records.ts';

export type { Flaw } from './values.ts';
export type { SourceRecord };

/** The upstream's list became another one during the walk; a walk from the start may find it at rest. */
export class UpstreamChangedError extends UpstreamError {
  override name = 'UpstreamChangedError';
}

/** What the importer allows a list. */
export interface ReaderLimits {
  /** Pages of one walk. */
  readonly pages: number;
  /** Levels of arrays and objects in a record. */
  readonly depth: number;
  /** Bytes of text since the last whole record: one giant record, or endless white space. */
  readonly bytesWithoutRecord: number;
}

/** How much of a `totalCount` that is no number a warning shows. */
const maxShownCount = 40;

/** The limits that hold outside of tests. */
export const readerLimits: ReaderLimits = Object.freeze({
  pages: 100_000,
  depth: 32,
  bytesWithoutRecord: 4 * 1024 ** 2,
});

/** Records that became whole together, and how many bytes of text were read for them. */
export interface RecordBatch {
  /** Never empty. */
  readonly records: readonly SourceRecord[];
  readonly bytes: number;
  /** The page that they are from, counted from 1. */
  readonly page: number;
  /** How much of their page had arrived. */
  readonly arrival: Arrival;
}

/** What to read. */
export interface ReadOptions {
  /** The first page. */
  readonly url: URL;
  /** Borrowed: its maker closes it. */
  readonly upstream: Upstream;
  /** Of the live version, to learn that nothing has changed. */
  readonly validators?: Validators | null | undefined;
  /** Tests make limits smaller. */
  readonly limits?: Partial<ReaderLimits> | undefined;
}

/** What a walk learned. */
export interface Walk {
  /** The upstream answered that nothing has changed; no records came. */
  readonly notModified: boolean;
  readonly pages: number;
  /** `_meta.totalCount` as found; `undefined` where there is none. */
  readonly totalCount: unknown;
  /** The `Medref-Version` header. */
  readonly version: string | null;
  /** Of a list that is one document; null for a list of pages, each of which has its own. */
  readonly validators: Validators | null;
  /** Plain sentences about what is odd but no reason to fail. */
  readonly warnings: readonly string[];
}

/**
 * Reads all records of a list, following `_links.next.href` to the last page. Ending the iteration early closes the
 * connection.
 * @returns batches of records, then the walk. Throws {@link UpstreamError},
 * {@link UpstreamChangedError} where starting again may help, or the reason of the upstream's signal.
 */
export async function* readRecords(options: ReadOptions): AsyncGenerator<RecordBatch, Walk, undefined> {
  const { url, upstream } = options;
  const limits = { ...readerLimits, ...options.limits };
  const visited = new Set<string>();
  let first: Page | undefined;
  let read = 0;
  for (let next = url; ; ) {
    const document = await upstream.open(next, first ? null : options.validators);
    if ('notModified' in document) return { ...notModified, version: document.version };
    visited.add(next.href);
    const context: PageContext = { first, number: visited.size, recordsBefore: read, limits };
    const page: Page = yield* readPage(document, context);
    first ??= page;
    read += page.records;
    if (page.next === null) return walkOf(first, { pages: visited.size, read, url });
    next = nextUrl(url, page.next, page.url);
    checkProgress(page, { next, visited, read, limits });
  }
}

const notModified: Walk = Object.freeze({
  notModified: true,
  pages: 0,
  totalCount: undefined,
  version: null,
  validators: null,
  warnings: [],
});

interface Page extends Envelope {
  url: URL;
  version: string | null;
  validators: Validators;
  records: number;
}

interface PageContext {
  first: Page | undefined;
  /** From 1. */
  number: number;
  recordsBefore: number;
  limits: ReaderLimits;
}

async function* readPage(
  document: UpstreamDocument,
  context: PageContext,
): AsyncGenerator<RecordBatch, Page, undefined> {
  const { url, version, validators } = document;
  const { first } = context;
  try {
    if (first && version !== first.version) {
      throw changed(url, 'its Medref-Version', first.version, version);
    }
    const { next, totalCount, records } = yield* readDocument(document, context);
    if (first && !isDeepStrictEqual(totalCount, first.totalCount)) {
      throw changed(url, 'its totalCount', first.totalCount, totalCount);
    }
    return { url, version, validators, records, next, totalCount };
  } finally {
    document.close();
  }
}

async function* readDocument(
  document: UpstreamDocument,
  { number: page, recordsBefore, limits }: PageContext,
): AsyncGenerator<RecordBatch, Envelope & { records: number }, undefined> {
  const name = urlText(document.url);
  const decoder = new TextDecoder('utf-8', { fatal: true });
  const parser = createRecordParser({
    lines: document.lines,
    recordsBefore,
    maxDepth: limits.depth,
  });
  let position = recordsBefore;
  let bytesWithoutRecord = 0;
  try {
    for await (const chunk of document.body) {
      for (const piece of pieces(chunk)) {
        // Counted before it is parsed, because the tokenizer holds on to all of an unfinished string.
        bytesWithoutRecord += piece.length;
        if (bytesWithoutRecord > limits.bytesWithoutRecord) throw tooLong(name, position, limits);
        const records = parser.feed(decoder.decode(piece, { stream: true }));
        if (records.length === 0) continue;
        position += records.length;
        yield { records, bytes: bytesWithoutRecord, page, arrival: document.arrival() };
        bytesWithoutRecord = 0;
      }
    }
    const records = [...parser.feed(decoder.decode()), ...parser.end()];
    position += records.length;
    if (records.length > 0) yield { records, bytes: bytesWithoutRecord, page, arrival: document.arrival() };
    return { ...parser.envelope, records: position - recordsBefore };
  } catch (error) {
    throw documentFailure(name, position, error);
  }
}

/** Small enough that the counted text since the last record is true to the limit. */
function* pieces(chunk: Uint8Array): Generator<Uint8Array> {
  const size = 64 * 1024;
  for (let from = 0; from < chunk.length; from += size) yield chunk.subarray(from, from + size);
}

function documentFailure(name: string, position: number, error: unknown): unknown {
  if (error instanceof UnreadableJson) return new UpstreamError(`${name} ${error.message}`);
  if ((error as { code?: string }).code === 'ERR_ENCODING_INVALID_ENCODED_DATA') {
    return new UpstreamError(`${name} is not valid UTF-8, soon after ${recordsUpTo(position)}.`);
  }
  return error;
}

function tooLong(name: string, position: number, limits: ReaderLimits): UpstreamError {
  return new UpstreamError(
    `${name} goes on for more than ${limits.bytesWithoutRecord} bytes after ${recordsUpTo(position)} without another record.`,
  );
}

function recordsUpTo(position: number): string {
  return position === 0 ? 'its start' : `record ${position}`;
}

function changed(url: URL, what: string, before: unknown, now: unknown): UpstreamChangedError {
  const shown = (value: unknown) => quoted(String(JSON.stringify(value)));
  return new UpstreamChangedError(
    `${urlText(url)} changed during the walk: ${what} was ${shown(before)} and is now ${shown(now)}.`,
  );
}

/** The next page's URL, which must be where the operator sent the importer to, and nowhere else. */
function nextUrl(start: URL, href: string, base: URL): URL {
  const next = namedUrl(href, base);
  if (next === null) {
    throw new UpstreamError(
      `${urlText(base)} has a next page that is not a URL of at most ${maxUrlLength} characters.`,
    );
  }
  if (next.protocol !== start.protocol || next.host !== start.host) {
    const redirected =
      next.origin === base.origin ? ' If that is where it redirects, set the URL to it.' : '';
    throw new UpstreamError(
      `${urlText(base)} has its next page at another origin, ${urlText(next)}. Only ${start.protocol}//${start.host} is asked.${redirected}`,
    );
  }
  next.hash = '';
  return next;
}

interface Progress {
  next: URL;
  visited: ReadonlySet<string>;
  read: number;
  limits: ReaderLimits;
}

/** Throws where following the next page would never end. */
function checkProgress(page: Page, { next, visited, read, limits }: Progress): void {
  const name = urlText(page.url);
  if (page.records === 0) throw new UpstreamError(`${name} has an empty page that names a next one.`);
  const totalCount = countOf(page.totalCount);
  if (totalCount !== null && read > totalCount) {
    throw new UpstreamError(
      `${name} names a next page, although ${counted(read, 'record')} ${read === 1 ? 'was' : 'were'} read and its totalCount is ${totalCount}.`,
    );
  }
  if (visited.has(next.href))
    throw new UpstreamError(`${name} names a next page that was read before: a loop in next.`);
  if (visited.size >= limits.pages)
    throw new UpstreamError(`${name} goes on for more than ${limits.pages} pages.`);
}

function walkOf(first: Page, { pages, read, url }: { pages: number; read: number; url: URL }): Walk {
  const { totalCount: found, version } = first;
  const totalCount = countOf(found);
  if (totalCount !== null && read < totalCount) {
    throw new UpstreamError(
      `${urlText(url)} is cut off: its totalCount is ${totalCount}, but its last page came after ${counted(read, 'record')}.`,
    );
  }
  return {
    notModified: false,
    pages,
    totalCount: found,
    version,
    validators: pages === 1 ? first.validators : null,
    warnings: totalCountWarnings(urlText(url), found, read),
  };
}

/** A `totalCount` that is a number, or digits in a string as some servers write it; else null. */
function countOf(totalCount: unknown): number | null {
  if (typeof totalCount === 'number') return totalCount;
  return typeof totalCount === 'string' && /^\d+$/.test(totalCount) ? Number(totalCount) : null;
}

function totalCountWarnings(name: string, found: unknown, read: number): string[] {
  const totalCount = countOf(found);
  if (totalCount === read || found === undefined || found === null) return [];
  if (totalCount !== null)
    return [
      `${name} says that its totalCount is ${totalCount}, but ${counted(read, 'record')} ${read === 1 ? 'was' : 'were'} read.`,
    ];
  const text = shortened(JSON.stringify(found), maxShownCount);
  return [
    `${name} has a totalCount that is not a number, ${text}: whether the list is whole was not checked by it.`,
  ];
}
