// The JSON around records: envelopes, links, digests. A record is never parsed on its way out.

import { STATUS_CODES } from 'node:http';
import type { ResponseObject, ResponseToolkit } from '@hapi/hapi';
import type { Version } from '../../shared/store/versions.ts';
import type { PageRequest } from '../query.ts';
import type { Change } from '../read/read-model.ts';

/** Grows when the bytes of a body change for the same records, so that caches let go of the older ones. */
export const bodyRevision = 1;

const singleStart = Buffer.from('{"data":');
const singleEnd = Buffer.from(',"success":true}');

/** What a list envelope has before its records: `{"data":[` */
export const listStart = Buffer.from('{"data":[');

/** What a list envelope has after its records: `], _links, _meta, success: true}`. @param links see paging.ts */
export function listEnd(links: string, { totalCount, pageCount, currentPage, perPage }: PageMeta): Buffer {
  const meta = `{"totalCount":${totalCount},"pageCount":${pageCount},"currentPage":${currentPage},"perPage":${perPage}}`;
  return Buffer.from(`],"_links":${links},"_meta":${meta},"success":true}`);
}

/** An element of a list of changes: `{id, change, record}`, without `record` when it was removed. */
export function changeElement({ id, change, record }: Change): Buffer {
  const start = `{"id":${id},"change":"${change}"`;
  return record
    ? Buffer.concat([Buffer.from(`${start},"record":`), record, Buffer.from('}')])
    : Buffer.from(`${start}}`);
}

/** `{data: {…}, success: true}` */
export function singleEnvelope(record: Buffer): Buffer {
  return Buffer.concat([singleStart, record, singleEnd]);
}

/** `{success: false, data: {name, message, code: 0, status}}` */
export function errorEnvelope(status: number, message: string): string {
  const name = STATUS_CODES[status] ?? 'Error';
  return JSON.stringify({ success: false, data: { name, message, code: 0, status } });
}

/** A response of JSON text. */
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

/** What a page says of itself. */
export function pageMeta(totalCount: number, { page, perPage }: PageRequest): PageMeta {
  return { totalCount, pageCount: Math.ceil(totalCount / perPage), currentPage: page, perPage };
}

/**
 * `_links` of a page, as JSON text. `prev` is there after the first page (beyond the end it is the last), `next`
 * before the last; `first` and `last` are always there.
 * @param address absolute URL of the collection
 * @param others the request's other parameters, which each link carries first
 */
export function pageLinks(
  address: string,
  { pageCount, currentPage, perPage }: PageMeta,
  others: Readonly<Record<string, string | number>> = {},
): string {
  // Both ends of a link are the same for all of them, so they are escaped once.
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

/** Both digests of a version, in base64; `null` where one is not known, of a version that an older release published. */
export interface Digests {
  /** SHA-256 of its lines. */
  readonly list: string;
  /** Sum of the SHA-256 of each record, modulo 2^256. */
  readonly set: string | null;
}

export function digestsOf({ checksum, setDigest }: Version): Digests {
  return { list: base64(checksum), set: setDigest === undefined ? null : base64(setDigest) };
}

function base64(hexadecimal: string): string {
  return Buffer.from(hexadecimal, 'hex').toString('base64');
}

/** `Medref-Digest`, written as RFC 9530 writes digests. */
export function digestFields(version: Version): string[] {
  const { list, set } = digestsOf(version);
  return ['medref-digest', `list=:${list}:${set === null ? '' : `, set=:${set}:`}`];
}
