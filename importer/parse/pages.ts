// Reads all records of a list in batches, page by page. Fails if the list changes meanwhile, loops or is truncated.

import { isDeepStrictEqual } from 'node:util';
import { counted, truncate } from '../../shared/text.ts';
import { maxUrlLength, namedUrl, quoted, UpstreamError, urlText } from '../upstream/access.ts';
import type { Arrival, UpstreamDocument, Validators } from '../upstream/body.ts';
import type { Upstream } from '../upstream/upstream.ts';
import { createRecordParser, type Envelope, type SourceRecord, UnreadableJson } from './records.ts';

export type { SourceRecord };

/** The list changed while it was read; a new attempt may succeed. */
export class UpstreamChangedError extends UpstreamError {
  override name = 'UpstreamChangedError';
}

/** Limits on a list. */
export interface ReaderLimits {
  /** Pages of one list. */
  readonly pages: number;
  /** Levels of arrays and objects in a record. */
  readonly depth: number;
  /** Bytes of text since the last complete record: one giant record, or endless white space. */
  readonly bytesWithoutRecord: number;
}

/** The limits in production. */
export const readerLimits: ReaderLimits = Object.freeze({
  pages: 100_000,
  depth: 32,
  bytesWithoutRecord: 4 * 1024 ** 2,
});

/** How many characters of an invalid `totalCount` a warning shows. */
const maxShownCount = 40;

/** Small enough to enforce `bytesWithoutRecord` precisely. */
const pieceBytes = 64 * 1024;

/** Records that were completed together. */
export interface RecordBatch {
  /** At least one. */
  readonly records: readonly SourceRecord[];
  /** Their page, from 1. */
  readonly page: number;
  /** How much of their page had arrived. */
  readonly arrival: Arrival;
}

/** What to read. */
export interface ReadOptions {
  /** The first page. */
  readonly url: URL;
  /** Borrowed: the caller closes it. */
  readonly upstream: Upstream;
  /** Validators of the live version, for a conditional request. */
  readonly validators?: Validators | null | undefined;
  /** Tests make limits smaller. */
  readonly limits?: Partial<ReaderLimits> | undefined;
}

/** The result of reading all pages. */
export interface Walk {
  /** Upstream reported that nothing has changed; there are no records. */
  readonly notModified: boolean;
  readonly pages: number;
  /** `_meta.totalCount` as found; `undefined` if there is none. */
  readonly totalCount: unknown;
  /** The `Medref-Version` header. */
  readonly version: string | null;
  /** The validators of a list in one document; `null` for a paged list, whose pages have their own. */
  readonly validators: Validators | null;
  /** Warnings about oddities that are no reason to fail, as sentences. */
  readonly warnings: readonly string[];
}

/** One page that was read. */
interface Page extends Envelope {
  readonly document: UpstreamDocument;
  readonly records: number;
}

/** The progress of reading. */
interface Progress {
  /** Addresses of the pages so far. */
  readonly visited: Set<string>;
  first: Page | undefined;
  records: number;
}

/**
 * Reads all records of a list, following `_links.next.href` to the last page. Ending the iteration early closes the connection.
 * @returns batches of records, then the walk
 * @throws UpstreamError; UpstreamChangedError if a new attempt may succeed; or the reason of the upstream's signal
 */
export async function* readRecords(options: ReadOptions): AsyncGenerator<RecordBatch, Walk, undefined> {
  const { url, upstream } = options;
  const limits = { ...readerLimits, ...options.limits };
  const walk: Progress = { visited: new Set(), first: undefined, records: 0 };
  for (let next = url; ; ) {
    const document = await upstream.open(next, walk.first ? null : options.validators);
    if ('notModified' in document) {
      const { version } = document;
      return { notModified: true, pages: 0, totalCount: undefined, version, validators: null, warnings: [] };
    }
    walk.visited.add(next.href);
    const page: Page = yield* readPage(document, walk, limits);
    walk.first ??= page;
    walk.records += page.records;
    if (page.next === null) return endOf(walk, walk.first, url);
    next = nextUrl(url, page.next, document.url);
    checkProgress(walk, page, next, limits);
  }
}

async function* readPage(
  document: UpstreamDocument,
  { first, visited, records: recordsBefore }: Progress,
  limits: ReaderLimits,
): AsyncGenerator<RecordBatch, Page, undefined> {
  const { url, version } = document;
  const name = urlText(url);
  const decoder = new TextDecoder('utf-8', { fatal: true });
  const parser = createRecordParser({ lines: document.lines, recordsBefore, maxDepth: limits.depth });
  let position = recordsBefore;
  const batchOf = (records: SourceRecord[]): RecordBatch => {
    position += records.length;
    return { records, page: visited.size, arrival: document.arrival() };
  };
  const lastRecord = () => (position === 0 ? 'its start' : `record ${position}`);
  try {
    if (first && version !== first.document.version) {
      throw changedError(url, 'its Medref-Version', first.document.version, version);
    }
    let bytesWithoutRecord = 0;
    for await (const chunk of document.body) {
      for (let from = 0; from < chunk.length; from += pieceBytes) {
        const piece = chunk.subarray(from, from + pieceBytes);
        // Counted before parsing, because the parser keeps all of an unfinished value.
        bytesWithoutRecord += piece.length;
        if (bytesWithoutRecord > limits.bytesWithoutRecord) {
          throw new UpstreamError(
            `${name} goes on for more than ${limits.bytesWithoutRecord} bytes after ${lastRecord()} without another record.`,
          );
        }
        const records = parser.feed(decoder.decode(piece, { stream: true }));
        if (records.length === 0) continue;
        bytesWithoutRecord = 0;
        yield batchOf(records);
      }
    }
    const records = [...parser.feed(decoder.decode()), ...parser.end()];
    if (records.length > 0) yield batchOf(records);
    const { next, totalCount } = parser.envelope;
    if (first && !isDeepStrictEqual(totalCount, first.totalCount)) {
      throw changedError(url, 'its totalCount', first.totalCount, totalCount);
    }
    return { document, next, totalCount, records: position - recordsBefore };
  } catch (error) {
    if (error instanceof UnreadableJson) throw new UpstreamError(`${name} ${error.message}`);
    if ((error as { code?: string }).code === 'ERR_ENCODING_INVALID_ENCODED_DATA') {
      throw new UpstreamError(`${name} is not valid UTF-8, soon after ${lastRecord()}.`);
    }
    throw error;
  } finally {
    document.close();
  }
}

function changedError(url: URL, what: string, before: unknown, now: unknown): UpstreamChangedError {
  const shown = (value: unknown) => quoted(String(JSON.stringify(value)));
  return new UpstreamChangedError(
    `${urlText(url)} changed while it was read: ${what} was ${shown(before)} and is now ${shown(now)}.`,
  );
}

/** Returns the next page's URL, which must have the origin of the operator's. */
function nextUrl(start: URL, href: string, base: URL): URL {
  const next = namedUrl(href, base);
  if (next === null) {
    throw new UpstreamError(
      `${urlText(base)} has a next page that is not a URL of at most ${maxUrlLength} characters.`,
    );
  }
  if (next.protocol !== start.protocol || next.host !== start.host) {
    const advice = next.origin === base.origin ? '  If the URL redirects there, change the URL.' : '';
    throw new UpstreamError(
      `${urlText(base)} has its next page at another origin, ${urlText(next)}. ` +
        `Only ${start.protocol}//${start.host} is requested.${advice}`,
    );
  }
  next.hash = '';
  return next;
}

/** Throws if following the next page would never end. */
function checkProgress(
  { visited, records }: Progress,
  { document, records: onPage, totalCount: found }: Page,
  next: URL,
  limits: ReaderLimits,
): void {
  const name = urlText(document.url);
  if (onPage === 0) throw new UpstreamError(`${name} has an empty page with a next page.`);
  const totalCount = countOf(found);
  if (totalCount !== null && records > totalCount) {
    throw new UpstreamError(
      `${name} has a next page, although ${wereRead(records)} and its totalCount is ${totalCount}.`,
    );
  }
  if (visited.has(next.href)) {
    throw new UpstreamError(`${name} has a next page that was read before: a loop.`);
  }
  if (visited.size >= limits.pages) {
    throw new UpstreamError(`${name} has more than ${limits.pages} pages.`);
  }
}

/** Returns the result of reading all pages. @throws UpstreamError if the list ended before its totalCount */
function endOf({ visited, records }: Progress, { document, totalCount: found }: Page, url: URL): Walk {
  const name = urlText(url);
  const totalCount = countOf(found);
  const warnings: string[] = [];
  if (totalCount === null) {
    if (found !== undefined && found !== null) {
      const text = truncate(JSON.stringify(found), maxShownCount);
      warnings.push(
        `${name} has a totalCount that is not a number, ${text}: the list was not checked for completeness.`,
      );
    }
  } else if (records < totalCount) {
    throw new UpstreamError(
      `${name} is truncated: its totalCount is ${totalCount}, but its last page came after ${counted(records, 'record')}.`,
    );
  } else if (records > totalCount) {
    warnings.push(`${name} reports a totalCount of ${totalCount}, but ${wereRead(records)}.`);
  }
  return {
    notModified: false,
    pages: visited.size,
    totalCount: found,
    version: document.version,
    validators: visited.size === 1 ? document.validators : null,
    warnings,
  };
}

/** Returns a `totalCount` that is a number, or a string of digits as some servers send; otherwise `null`. */
function countOf(totalCount: unknown): number | null {
  if (typeof totalCount === 'number') return totalCount;
  return typeof totalCount === 'string' && /^\d+$/.test(totalCount) ? Number(totalCount) : null;
}

function wereRead(records: number): string {
  return `${counted(records, 'record')} ${records === 1 ? 'was' : 'were'} read`;
}
