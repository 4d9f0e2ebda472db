// medref/client: products, drugs and companies of a medref, for Node and browsers. In: an address and a key.

import { Collection, type NameSearch, type ProductSearch } from './collection.ts';
import { type ClientOptions, Connection, type Timing, usualTiming } from './connection.ts';
import type { Company, Drug, Product } from './records.ts';

export type { Change, Link, Links, Meta, Page, Version, Versioned } from './answers.ts';
export type {
  ChangesOptions,
  Collection,
  NameSearch,
  PageOptions,
  ProductSearch,
  ReadOptions,
  Stoppable,
} from './collection.ts';
export type { ClientOptions } from './connection.ts';
export { type Digest, digestOf, SetDigest } from './digests.ts';
export { gtinOf, hasCheckDigit } from './gtin.ts';
export { MedrefError } from './medref-error.ts';
export type { MirrorOptions, MirrorStep } from './mirror.ts';
export type { AnyRecord, Barcode, Company, Drug, Named, Product } from './records.ts';

/** The collections of a medref. */
export interface MedrefClient {
  readonly products: Collection<Product, ProductSearch>;
  readonly drugs: Collection<Drug, NameSearch>;
  readonly companies: Collection<Company, NameSearch>;
}

/**
 * A client of a medref. It asks again where that can help: after 429 and 503 as the service says, and after connections
 * that broke.
 * @param timing for tests: how long things take
 * @throws TypeError where the address or the key cannot be one
 * @example
 * const { products } = createClient({ baseUrl, key });
 * for await (const { product } of products.search({ name: 'sakalmi' })) console.log(product.id);
 */
export function createClient(options: ClientOptions, timing: Timing = usualTiming): MedrefClient {
  const connection = new Connection(options ?? {}, timing);
  return {
    products: new Collection(connection, 'products'),
    drugs: new Collection(connection, 'drugs'),
    companies: new Collection(connection, 'companies'),
  };
}
