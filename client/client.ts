// medref/client: products, drugs and companies of a medref, for Node and browsers. In: an address and a key.

import { type ClientOptions, Connection, type Query, type Timing, usualTiming } from './connection.ts';
import {
  type AnyRecord,
  type Change,
  type Company,
  type Drug,
  type ListBody,
  type Page,
  type Product,
  type ReadVersion,
  readLines,
  readPages,
  recordIn,
  type Version,
  type Versioned,
} from './lists.ts';
import { MedrefError } from './medref-error.ts';
import { type MirrorOptions, type MirrorStep, mirror } from './mirror.ts';

export type { ClientOptions } from './connection.ts';
export { type Digest, digestOf, SetDigest } from './digests.ts';
export { gtinOf, hasCheckDigit } from './gtin.ts';
export type {
  AnyRecord,
  Barcode,
  Change,
  Company,
  Drug,
  Link,
  Links,
  Meta,
  Named,
  Page,
  Product,
  Version,
  Versioned,
} from './lists.ts';
export { MedrefError } from './medref-error.ts';
export type { MirrorOptions, MirrorStep } from './mirror.ts';

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

export interface Stoppable {
  /** Ends this call; it then throws the reason of the signal. */
  readonly signal?: AbortSignal | undefined;
}

export interface ReadOptions extends Stoppable {
  /** A version that is kept; else the live one. */
  readonly version?: number | undefined;
}

/** What drugs and companies are searched by. */
export interface NameSearch extends ReadOptions {
  /** The beginning of the name. */
  readonly name?: string;
}

/** What products are searched by: all that is given must hold. */
export interface ProductSearch extends NameSearch {
  /** 12 or 13 digits, see `gtinOf`. */
  readonly barcode?: string;
  /** The id of a drug. */
  readonly drug?: number;
}

/** Which page, of what. */
export interface PageOptions {
  readonly page?: number | undefined;
  /** 200 at most, and 200 where it is not given. */
  readonly perPage?: number | undefined;
  /** Up to 200 ids, in the order in which their records are to come; not with a search. */
  readonly ids?: readonly number[];
}

export interface ChangesOptions extends ReadOptions {
  /** The version that you have. */
  readonly since: number;
  /** For how many seconds, 1 to 60, the service waits for a publication where nothing has changed. */
  readonly wait?: number | undefined;
}

/** Reads one collection. Every method throws MedrefError, or what a signal gives as its reason. */
export class Collection<Item extends AnyRecord, Search extends NameSearch> {
  readonly #connection: Connection;
  readonly #name: string;

  constructor(connection: Connection, name: string) {
    this.#connection = connection;
    this.#name = name;
  }

  /**
   * One record by its id; `null` where no record has this id.
   * @example
   * const product = await client.products.get(1);
   * console.log(product?.drug.name); // NÖGEMRÜN
   */
  async get(id: number, { version, signal }: ReadOptions = {}): Promise<Item | null> {
    const path = `${this.#name}/${encodeURIComponent(id)}`;
    const asked = { query: { version }, signal, isKept: true };
    try {
      return (await this.#connection.json<{ data: Item }>(path, asked)).body.data;
    } catch (error) {
      // Below a wrong address of the service no route is there, so that no record would be.
      const isMissing = error instanceof MedrefError && error.name === 'Not Found';
      if (isMissing && !error.message.startsWith('There is nothing at')) return null;
      throw error;
    }
  }

  /**
   * A page of the list, of what a search finds, or of the records with some ids.
   * @throws TypeError for a criterion that is present but `undefined` or `null`: it would be a page of the whole list
   * @example
   * const { data, meta } = await client.products.page({ name: 'sakalmi', perPage: 1 });
   * console.log(data[0]?.product.name, meta.totalCount); // SAKALMİX 10 MG/20 MG FİLM KAPLI TABLET, 30 ADET 3
   */
  async page(options?: PageOptions & Search): Promise<Page<Item>> {
    const { page, perPage, signal, version: pinned, ...criteria } = options ?? ({} as PageOptions & Search);
    requireCriteria(criteria, [...searchCriteria, 'ids']);
    const { ids, ...others } = criteria as typeof criteria & Query;
    const query = { ...others, ids: ids?.join(), version: pinned, page, 'per-page': perPage };
    const asked = { query, signal, isKept: true };
    const { version, body } = await this.#connection.json<ListBody<Item>>(this.#name, asked);
    return { data: body.data, links: body._links, meta: body._meta, version };
  }

  /**
   * The whole list in its order, of one version, in bounded memory; read on where the connection is cut. The last record
   * comes when all of them are proven by the digest of the version; else a MedrefError is thrown, named `DigestMismatch`.
   * @example
   * const drugs = client.drugs.all();
   * let count = 0;
   * for await (const { drug } of drugs) if (drug.name !== '') count += 1;
   * console.log(count > 0, drugs.version !== undefined); // true true
   */
  all({ version, signal }: ReadOptions = {}): Versioned<Item> {
    const connection = this.#connection;
    const name = this.#name;
    return versioned(version, async function* (read) {
      for await (const line of readLines(connection, name, { read, signal })) yield recordIn<Item>(line);
    });
  }

  /**
   * All that a search finds, of one version.
   * @throws TypeError without a criterion, and for one that is `undefined` or `null`: it would find the whole list
   * @example
   * for await (const { product } of client.products.search({ barcode: '8687873012778' }))
   *   console.log(product.id); // 1
   */
  search(search: Search): Versioned<Item> {
    const { signal, version, ...criteria } = search ?? ({} as Search);
    requireCriteria(criteria, searchCriteria);
    if (Object.keys(criteria).length === 0)
      throw new TypeError(`search needs one of ${searchCriteria.join(', ')}; all() reads the whole list.`);
    return versioned(undefined, (read) =>
      readPages<Item>(this.#connection, this.#name, { query: { ...criteria, version }, read, signal }),
    );
  }

  /**
   * The versions that are kept, the latest first.
   * @example
   * const [latest] = await client.products.versions();
   * console.log(latest?.live, latest?.totalCount); // true 5000
   */
  async versions({ signal }: Stoppable = {}): Promise<Version[]> {
    const read: ReadVersion = { version: undefined, digest: undefined };
    const asked = { query: {}, read, signal, isKept: true, isOfAll: true };
    // A publication between two pages moves some on to the next one, which has them once more.
    const versions = new Map<number, Version>();
    for await (const it of readPages<Version>(this.#connection, `${this.#name}/versions`, asked))
      versions.set(it.version, it);
    return [...versions.values()];
  }

  /**
   * What differs between a version that you have and the live one, by id. A MedrefError with the status 410 says that
   * the changes since then are not kept: read the whole list.
   * @example
   * const { version } = await client.products.page({ perPage: 1 });
   * const changes = client.products.changes({ since: version });
   * for await (const { id, change } of changes) console.log(id, change);
   * console.log(changes.version === version); // true
   */
  changes({ wait, signal, ...query }: ChangesOptions): Versioned<Change<Item>> {
    return versioned(undefined, (read) =>
      readPages<Change<Item>>(this.#connection, `${this.#name}/changes`, {
        query: { ...query },
        read,
        wait,
        signal,
      }),
    );
  }

  /**
   * Follows the collection: gives a snapshot, and then what changes as soon as it is published, until a signal ends it.
   * Each step is whole and proven before it is given. What passes by itself is waited for.
   * @example
   * const copy = new Map<number, Product>();
   * for await (const step of client.products.mirror()) {
   *   if (step.kind === 'snapshot') copy.clear();
   *   for (const record of step.records ?? []) copy.set(record.product.id, record);
   *   for (const { id, record } of step.changes ?? []) record ? copy.set(id, record) : copy.delete(id);
   *   console.log(copy.size, digestOf(copy.values()).set === step.digest.set); // 5000 true
   *   break; // A copy that lives on does not end here.
   * }
   */
  mirror(options: MirrorOptions = {}): AsyncGenerator<MirrorStep<Item>, void, undefined> {
    return mirror<Item>(this.#connection, this.#name, options);
  }
}

/** The names of what a search may be by. */
const searchCriteria = ['name', 'barcode', 'drug'];

/** @throws TypeError for a name that is no criterion, and for a criterion without a value */
function requireCriteria(criteria: object, known: readonly string[]): void {
  for (const [name, value] of Object.entries(criteria)) {
    if (!known.includes(name))
      throw new TypeError(`There is no option "${name}"; there are ${known.join(', ')}.`);
    if (value === undefined || value === null)
      throw new TypeError(`${name} is ${value}. Without a value, every record would match.`);
  }
}

function versioned<Item>(
  version: number | undefined,
  start: (read: ReadVersion) => AsyncGenerator<Item, void, undefined>,
): Versioned<Item> {
  const read: ReadVersion = { version, digest: undefined };
  const items = start(read);
  return {
    [Symbol.asyncIterator]: () => items,
    get version() {
      return read.version;
    },
    get digest() {
      return read.digest;
    },
  };
}
