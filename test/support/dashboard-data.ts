// What a dashboard has to show in tests: versions that differ, rejects, a refused import, keys; with names that nobody
// would want in a page.

import { companies as companyCollection } from '../../shared/collections/company.ts';
import type { Product } from '../../shared/collections/product.ts';
import { products as productCollection } from '../../shared/collections/product.ts';
import type { Redis } from '../../shared/redis/connections.ts';
import { createApiKey } from '../../shared/store/api-keys.ts';
import { importRecords } from './importing.ts';
import { companies, product, products } from './records.ts';

/** Markup, characters that turn the direction of a line, controls, and very long names. */
export const hostileNames = {
  markup: `<script>alert(1)</script>"><img src=x onerror=alert(1)>'&amp;`,
  direction: '\u202eTELBAT \u2067abc\u200f\u061c',
  controls: 'A\u0000B\u001b[31mC\u007f\u0085D\nE\tF\u2028G\ud800H',
  long: `L${'O'.repeat(9_998)}G`,
  combining: `Z${'\u0301\u0327'.repeat(400)}`,
} as const;

/** The versions that were published, the earlier one first. */
export interface DashboardData {
  readonly first: number;
  readonly second: number;
}

/** How many products there are in the first version; each hostile name is one of the first ids of the second one. */
export const productCount = 60;

/** Publishes two versions of products, then has an import refused; publishes companies; makes keys. */
export async function fillDashboard(redis: Redis, redisUrl: string): Promise<DashboardData> {
  const list = products(productCount);
  const options = { redisUrl, keyPrefix: 'medref' };
  const first = await importRecords(list, productCollection, options);
  const names = Object.values(hostileNames);
  const renamed = list.map((it, n): Product => {
    const name = names[n];
    return name === undefined ? it : { ...it, product: { ...it.product, name } };
  });
  const flaws = [
    {
      ...product(901),
      barcodes: [
        { barcode: '8690000000901', skrsStatus: null },
        { barcode: '<b>12</b>', skrsStatus: 'Aktif' },
      ],
    },
    { ...product(902), product: { id: 902, name: '\u202e \u0000' } },
    renamed[0],
  ];
  const second = await importRecords(
    [...renamed.slice(0, -2), product(61), product(62), ...flaws],
    productCollection,
    {
      ...options,
      maxRejectPercent: 50,
    },
  );
  await importRecords(companies(3), companyCollection, options);
  await importRecords([...list.slice(0, 20), ...flaws], productCollection, {
    ...options,
    maxRejectPercent: 50,
  });
  await createApiKey(redis, 'medref', { client: 'Pharmacy 7', expiresAt: null, rate: '10/s' });
  await createApiKey(redis, 'medref', { client: hostileNames.markup, expiresAt: new Date(0), rate: null });
  return { first: first.version as number, second: second.version as number };
}
