// A walk along the pages of a list.

import type { ListBody, ReadVersion } from './answers.ts';
import type { Connection, Patience, Query } from './connection.ts';
import { notMedref } from './medref-error.ts';

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
