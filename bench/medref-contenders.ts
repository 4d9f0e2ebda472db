// A medref that serves the real list, and all that is asked of it: pages, records, searches, each with what its answers are
// to be like.

import type { Product } from '../shared/collections/products.ts';
import { ask } from './answers.ts';
import type { Asked, Expectation } from './contenders.ts';
import type { LoadRequest } from './load.ts';
import { type Fields, fieldsOf, fullPages, idLists, namePrefixes, requestsFor } from './requests.ts';
import type { Service } from './service.ts';

/** Who serves it. */
type Served = Pick<Service, 'origin' | 'key' | 'pid' | 'redisPid'>;

/** One for each kind of thing that is asked. */
export type MedrefContenders = Readonly<
  Record<
    | 'page'
    | 'identityPage'
    | 'page50'
    | 'page30'
    | 'page10'
    | 'record'
    | 'notModified'
    | 'nameSearch'
    | 'barcode'
    | 'drug'
    | 'ids20'
    | 'ids200',
    Asked
  >
>;

/** A medref that serves the list, asked each kind of thing. */
export async function medrefContenders(
  service: Served,
  products: readonly Product[],
): Promise<MedrefContenders> {
  const gzip = fieldsOf(service.key, 'gzip');
  const contender = (name: string, requests: readonly LoadRequest[], expects: Expectation): Asked => ({
    ...{ name: `medref: ${name}`, requests, expects, isMedref: true },
    ...{ origin: service.origin, serverPid: service.pid, storePid: service.redisPid },
  });
  const pages = (perPage: number, fields: Fields, encoding: Expectation['encoding']) =>
    contender(
      `page of ${perPage}${encodingNames[encoding]}`,
      requestsFor(paths('/products', fullPages(products.length, perPage)), fields),
      { status: 200, encoding, records: perPage },
    );
  const page = pages(200, gzip, 'gzip');
  const prefixes = namePrefixes(products).map((it) => `name=${encodeURIComponent(it)}&per-page=10`);
  const barcodes = products.flatMap((it) => it.barcodes.map(({ barcode }) => `barcode=${barcode}`));
  const drugs = [...new Set(products.map(({ drug }) => `drug=${drug.id}`))];
  const byIds = (size: number, encoding: Expectation['encoding']) => {
    const requests = requestsFor(
      paths(
        '/products',
        idLists(products, size).map((it) => `ids=${it}`),
      ),
      gzip,
    );
    return contender(`${size} records by their ids`, requests, { status: 200, encoding, records: size });
  };
  const ids = products.map((it) => `/products/${it.product.id}`);
  const some = { status: 200, encoding: 'either', records: 'some' } as const;
  return {
    page,
    identityPage: pages(200, fieldsOf(service.key, 'identity'), 'identity'),
    page50: pages(50, gzip, 'either'),
    page30: pages(30, gzip, 'either'),
    page10: pages(10, gzip, 'either'),
    record: contender('one record by its id', requestsFor(ids, gzip), some),
    notModified: contender('304 for a page of 200', await revalidating(service.origin, page.requests), {
      ...{ status: 304, encoding: 'either' },
    }),
    nameSearch: contender(
      'search by 3 letters, 10 a page',
      requestsFor(paths('/products', prefixes), gzip),
      some,
    ),
    barcode: contender('search by barcode', requestsFor(paths('/products', barcodes), gzip), some),
    drug: contender('search by drug', requestsFor(paths('/products', drugs), gzip), some),
    ids20: byIds(20, 'either'),
    ids200: byIds(200, 'gzip'),
  };
}

/** An answer that may be either is small enough not to be compressed, or else it is gzip. */
const encodingNames = { gzip: ', gzip', identity: ', identity', either: '' } as const;

/** The targets of some queries of one path. */
export const paths = (path: string, queries: readonly string[]) => queries.map((query) => `${path}?${query}`);

/** The same requests by a client that holds the answers. */
async function revalidating(origin: string, requests: readonly LoadRequest[]): Promise<LoadRequest[]> {
  const revalidations: LoadRequest[] = [];
  for (const request of requests) {
    const { headers } = await ask(origin, request);
    const etag = headers['etag'] ?? '*';
    revalidations.push({ ...request, headers: { ...request.headers, 'If-None-Match': etag } });
  }
  return revalidations;
}
