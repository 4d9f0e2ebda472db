// The bodies of answers, as bytes around the bytes of stored records; a record is never parsed on its way out.

import { STATUS_CODES } from 'node:http';
import type { Change } from '../shared/read-model.ts';
import type { PageLinks, PageMeta } from './paging.ts';

/** Grows when the bytes of a body change for the same records, so that caches let go of the older ones. */
export const bodyRevision = 1;

const comma = Buffer.from(',');
const listStart = Buffer.from('{"data":[');
const singleStart = Buffer.from('{"data":');
const singleEnd = Buffer.from(',"success":true}');

/** `{data: […], _links, _meta, success: true}` */
export function listEnvelope(records: readonly Buffer[], links: PageLinks, meta: PageMeta): Buffer {
  const parts: Buffer[] = [listStart];
  for (const record of records) {
    if (parts.length > 1) parts.push(comma);
    parts.push(record);
  }
  const tail = `],"_links":${JSON.stringify(links)},"_meta":${JSON.stringify(meta)},"success":true}`;
  return Buffer.concat([...parts, Buffer.from(tail)]);
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
