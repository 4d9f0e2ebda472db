// The JSON around records: envelopes, links, digests. Records are sent without parsing them.

import { STATUS_CODES } from 'node:http';
import type { ResponseObject, ResponseToolkit } from '@hapi/hapi';
import type { Version } from '../../shared/store/versions.ts';
import type { PageRequest } from '../query.ts';
import type { Change } from '../read/read-model.ts';

/** Increase when the body of the same records changes, so that caches drop older bodies. */
export const bodyRevision = 1;

const singleStart = Buffer.from('{"data":');
const singleEnd = Buffer.from(',"success":true}');

/** The start of a list envelope: `{"data":[` */
export const listStart = Buffer.from('{"data":[');

/** Returns the end of a list envelope: `], _links, _meta, success: true}`. */
export function listEnd(links: string, { totalCount, pageCount, currentPage, perPage }: PageMeta): Buffer {
  const meta = `{"totalCount":${totalCount},"pageCount":${pageCount},"currentPage":${currentPage},"perPage":${perPage}}`;
  return Buffer.from(`],"_links":${links},"_meta":${meta},"success":true}`);
}

/** Returns an element of a change list: `{id, change, record}`, without `record` for a removed record. */
export function changeElement({ id, change, record }: Change): Buffer {
  const start = `{"id":${id},"change":"${change}"`;
  return record
    ? Buffer.concat([Buffer.from(`${start},"record":`), record, Buffer.from('}')])
    : Buffer.from(`${start}}`);
}

/** Returns `{data: {…}, success: true}`. */
export function singleEnvelope(record: Buffer): Buffer {
  return Buffer.concat([singleStart, record, singleEnd]);
}

/** Returns `{success: false, data: {name, message, code: 0, status}}`. */
export function errorEnvelope(status: number, message: string): string {
  const name = STATUS_CODES[status] ?? 'Error';
  return JSON.stringify({ success: false, data: { name, message, code: 0, status } });
}

/** Returns a response of JSON text. */
export function jsonResponse(h: ResponseToolkit, body: Buffer | string): ResponseObject {
  const response = h.response(body).type('application/json');
  response.charset('');
  return response;
}

/** `_meta` of a list. */
export interface PageMeta {
  readonly totalCount: number;
  readonly pageCount: number;
  readonly currentPage: number;
  readonly perPage: number;
}

/** Returns `_meta` of a page. */
export function pageMeta(totalCount: number, { page, perPage }: PageRequest): PageMeta {
  return { totalCount, pageCount: Math.ceil(totalCount / perPage), currentPage: page, perPage };
}

/**
 * Returns `_links` of a page as JSON text. `first` and `last` are always present, `prev` after the first page (past the end
 * it is the last page), and `next` before the last.
 * @param address absolute URL of the collection
 * @param others the other parameters of the request, which each link carries first
 */
export function pageLinks(
  address: string,
  { pageCount, currentPage, perPage }: PageMeta,
  others: Readonly<Record<string, string | number>> = {},
): string {
  // All links share a start and an end, which are escaped once.
  const start = `{"href":${JSON.stringify(`${address}?${query(others)}page=`).slice(0, -1)}`;
  const end = `&per-page=${perPage}"}`;
  const last = Math.max(1, pageCount);
  let links = `{"self":${start}${currentPage}${end},"first":${start}1${end},"last":${start}${last}${end}`;
  if (currentPage < pageCount) links += `,"next":${start}${currentPage + 1}${end}`;
  if (currentPage > 1) links += `,"prev":${start}${Math.min(currentPage - 1, last)}${end}`;
  return `${links}}`;
}

function query(parameters: Readonly<Record<string, string | number>>): string {
  let text = '';
  for (const name in parameters) text += `${name}=${encodeURIComponent(parameters[name] as string)}&`;
  return text;
}

/** Both digests of a version, in base64; `set` is `null` if it is unknown. */
export interface Digests {
  /** SHA-256 of the NDJSON text. */
  readonly list: string;
  /** Sum of the SHA-256 of all records, modulo 2^256. */
  readonly set: string | null;
}

export function digestsOf({ checksum, setDigest }: Version): Digests {
  return { list: base64(checksum), set: setDigest === undefined ? null : base64(setDigest) };
}

function base64(hexadecimal: string): string {
  return Buffer.from(hexadecimal, 'hex').toString('base64');
}

/** Returns the field `Medref-Digest`, in the syntax of RFC 9530. */
export function digestFields(version: Version): string[] {
  const { list, set } = digestsOf(version);
  return ['medref-digest', `list=:${list}:${set === null ? '' : `, set=:${set}:`}`];
}
