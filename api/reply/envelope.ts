// The bodies of answers, as bytes around the bytes of stored records; a record is never parsed on its way out.

import { STATUS_CODES } from 'node:http';
import type { Change } from '../read/read-model.ts';
import type { PageMeta } from './page-links.ts';

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
