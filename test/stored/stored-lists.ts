// The lists of products that dumps of each format were made of, the oldest first.

import type { Product } from '../../shared/collections/products.ts';
import { product, products } from '../support/records.ts';

const first = products(430);
/** One is gone, one has another name, one is new. */
const second = [
  ...first.filter((it) => it.product.id !== 7).map((it) => (it.product.id === 9 ? renamed(it) : it)),
  product(431),
];

/** What was imported, one after the other. */
export const storedProducts: readonly (readonly Product[])[] = [
  first,
  second,
  second.filter((it) => it.product.id !== 200),
];

function renamed(it: Product): Product {
  return { ...it, product: { ...it.product, name: 'ŞURUP ÇİĞDEM 100 ML' } };
}
