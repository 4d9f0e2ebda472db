// medref-client: reads products, drugs and companies of a medref, in Node and browsers.

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
  /** Medicinal products. */
  readonly products: Collection<Product, ProductSearch>;
  /** The drugs that products are of, each once. */
  readonly drugs: Collection<Drug, NameSearch>;
  /** Companies that make or sell medicinal products. */
  readonly companies: Collection<Company, NameSearch>;
}

/**
 * Creates a client of a medref. It retries requests after 429 and 503, as the service asks, and after broken connections.
 * @throws TypeError if the address or the key is malformed, and for an unknown option
 * @example
 * const { products } = createClient({ baseUrl, key });
 * for await (const { product } of products.search({ name: 'sakalmi' })) console.log(product.id);
 */
export function createClient(options: ClientOptions): MedrefClient;
/** @internal Tests shorten the durations. */
export function createClient(options: ClientOptions, timing: Timing): MedrefClient;
export function createClient(options: ClientOptions, timing: Timing = usualTiming): MedrefClient {
  requireKnown(options ?? {}, ['baseUrl', 'key', 'fetch', 'signal', 'timeout', 'retries']);
  const connection = new Connection(options ?? {}, timing);
  return {
    products: new Collection(connection, 'products'),
    drugs: new Collection(connection, 'drugs'),
    companies: new Collection(connection, 'companies'),
  };
}

/** A call that can be aborted. */
export interface Stoppable {
  /** Aborts this call, which then throws the signal's reason. */
  readonly signal?: AbortSignal | undefined;
}

/** The version to read. */
export interface ReadOptions extends Stoppable {
  /** A kept version; by default the live one. */
  readonly version?: number | undefined;
}

/** The searches of drugs and companies. */
export interface NameSearch extends ReadOptions {
  /** A prefix of the name. */
  readonly name?: string;
  /** 1 to 8 words of at least 2 characters; the name has, for each, a word that begins with it. Not combined with `name`. */
  readonly words?: string;
}

/** The searches of products, combined with AND. */
export interface ProductSearch extends NameSearch {
  /** 12 or 13 digits, see `gtinOf`. */
  readonly barcode?: string;
  /** The id of a drug. */
  readonly drug?: number;
  /** `true`: only actively published products; `false`: only the others. */
  readonly published?: boolean;
}

/** A page to read. */
export interface PageOptions {
  /** From 1; 1 by default. */
  readonly page?: number | undefined;
  /** Records per page; at most 200, 200 by default. */
  readonly perPage?: number | undefined;
  /** Up to 200 ids; records come in their order. Not combined with a search. */
  readonly ids?: readonly number[];
}

/** The changes to read. */
export interface ChangesOptions extends ReadOptions {
  /** The version that you have; or a date and time (RFC 3339): the last version that was published until then. */
  readonly since: number | string;
  /** Seconds, from 1 to 60, for which the service waits for a publication if nothing has changed. */
  readonly wait?: number | undefined;
}

/** A copy that its owner has verified. */
export interface CopyReport {
  /** Its version. */
  readonly version: number;
  /** Its set digest, in base64. */
  readonly digest: string;
}

/** Reads one collection. Every method throws MedrefError, a signal's reason, or TypeError for a wrong or unknown option. */
export class Collection<Item extends AnyRecord, Search extends NameSearch> {
  readonly #connection: Connection;
  readonly #name: string;

  constructor(connection: Connection, name: string) {
    this.#connection = connection;
    this.#name = name;
  }

  /**
   * Returns one record by its id; `null` if no record has it.
   * @example
   * const product = await client.products.get(1);
   * console.log(product?.drug.name); // NÖGEMRÜN
   */
  async get(id: number, options: ReadOptions = {}): Promise<Item | null> {
    const { version, signal } = requireKnown(options, ['version', 'signal']);
    if (!/^\d+$/.test(String(id))) throw new TypeError(`id must be a whole number, not ${String(id)}.`);
    const path = `${this.#name}/${encodeURIComponent(id)}`;
    const asked = { query: { version }, signal, isKept: true };
    try {
      return (await this.#connection.json<{ data: Item }>(path, asked)).body.data;
    } catch (error) {
      // With a wrong base address every route is missing, which must not look like a missing record.
      const isMissing = error instanceof MedrefError && error.reason === 'Not Found';
      if (isMissing && !error.message.startsWith('Nothing found at')) return null;
      throw error;
    }
  }

  /**
   * Returns a page of the list, of search results, or of the records with given ids.
   * @throws TypeError for a criterion that is `undefined` or `null`: the page would be of the whole list
   * @example
   * const { data, meta } = await client.products.page({ name: 'sakalmi', perPage: 1 });
   * console.log(data[0]?.product.name, meta.totalCount); // SAKALMİX 10 MG/20 MG FİLM KAPLI TABLET, 30 ADET 3
   */
  async page(options?: PageOptions & Search): Promise<Page<Item>> {
    const known = [...searchCriteria, 'ids', 'page', 'perPage', 'version', 'signal'];
    const given = requireKnown(options ?? ({} as PageOptions & Search), known);
    const { page, perPage, signal, version: pinned, ...criteria } = given;
    requireCriteria(criteria);
    const { ids, ...others } = criteria as typeof criteria & Query;
    const query = { ...others, ids: ids?.join(), version: pinned, page, 'per-page': perPage };
    const asked = { query, signal, isKept: true };
    const { version, body } = await this.#connection.json<ListBody<Item>>(this.#name, asked);
    return { data: body.data, links: body._links, meta: body._meta, version };
  }

  /**
   * Reads the whole list in order, of one version, in bounded memory, and resumes after a broken connection. The last record
   * comes after the digest of the version is verified; otherwise a MedrefError with the reason `DigestMismatch` is thrown.
   * @example
   * const drugs = client.drugs.all();
   * let count = 0;
   * for await (const { drug } of drugs) if (drug.name !== '') count += 1;
   * console.log(count > 0, drugs.version !== undefined); // true true
   */
  all(options: ReadOptions = {}): Versioned<Item> {
    const { version, signal } = requireKnown(options, ['version', 'signal']);
    const connection = this.#connection;
    const name = this.#name;
    return versioned(version, async function* (read) {
      for await (const line of readLines(connection, name, { read, signal })) yield recordIn<Item>(line);
    });
  }

  /**
   * Reads all results of a search, of one version.
   * @throws TypeError without a criterion, or for one that is `undefined` or `null`: the result would be the whole list
   * @example
   * for await (const { product } of client.products.search({ barcode: '8687873012778' }))
   *   console.log(product.id); // 1
   */
  search(search: Search): Versioned<Item> {
    const given = requireKnown(search ?? ({} as Search), [...searchCriteria, 'version', 'signal']);
    const { signal, version, ...criteria } = given;
    requireCriteria(criteria);
    if (Object.keys(criteria).length === 0)
      throw new TypeError(`search needs one of ${searchCriteria.join(', ')}; all() reads the whole list.`);
    return versioned(undefined, (read) =>
      readPages<Item>(this.#connection, this.#name, { query: { ...criteria, version }, read, signal }),
    );
  }

  /**
   * Returns the kept versions, newest first.
   * @example
   * const [latest] = await client.products.versions();
   * console.log(latest?.live, latest?.totalCount); // true 5000
   */
  async versions(options: Stoppable = {}): Promise<Version[]> {
    const { signal } = requireKnown(options, ['signal']);
    const read: ReadVersion = { version: undefined, digest: undefined };
    const asked = { query: {}, read, signal, isKept: true, isOfAll: true };
    // A publication between two pages moves some versions to the next page, which repeats them.
    const versions = new Map<number, Version>();
    for await (const it of readPages<Version>(this.#connection, `${this.#name}/versions`, asked))
      versions.set(it.version, it);
    return [...versions.values()];
  }

  /**
   * Reads the differences between your version and the live one, by id. A MedrefError with the status 410 means that these
   * changes are no longer kept: read the whole list.
   * @example
   * const { version } = await client.products.page({ perPage: 1 });
   * const changes = client.products.changes({ since: version });
   * for await (const { id, change } of changes) console.log(id, change);
   * console.log(changes.version === version); // true
   */
  changes(options: ChangesOptions): Versioned<Change<Item>> {
    const known = ['since', 'version', 'wait', 'signal'];
    const { wait, signal, ...query } = requireKnown(options ?? ({} as ChangesOptions), known);
    if (query.since === undefined || query.since === null)
      throw new TypeError(`since is ${query.since}: the version of your copy, or a date and time.`);
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
   * Reports to the operator which version your copy is, after you have verified its digest. A mirror and `all()` report it with
   * their next request.
   * @example
   * const all = client.drugs.all();
   * const copy = new SetDigest();
   * for await (const drug of all) copy.add(drug);
   * await client.drugs.report({ version: all.version ?? 0, digest: copy.value });
   */
  async report(copy: CopyReport): Promise<void> {
    const { version, digest } = requireKnown(copy, ['version', 'digest']);
    this.#connection.verified(this.#name, { version, set: digest });
    await this.#connection.json(`${this.#name}/changes`, { query: { since: version, 'per-page': 1 } });
  }

  /**
   * Follows the collection: yields a snapshot, then each publication's changes, until a signal ends it. Each step is complete
   * and verified before it is yielded. Temporary errors are retried.
   * @example
   * const copy = new Map<number, Product>();
   * for await (const step of client.products.mirror()) {
   *   if (step.kind === 'snapshot') copy.clear();
   *   for (const record of step.records ?? []) copy.set(record.product.id, record);
   *   for (const { id, record } of step.changes ?? []) record ? copy.set(id, record) : copy.delete(id);
   *   console.log(copy.size, digestOf(copy.values()).set === step.digest.set); // 5000 true
   *   break; // A real mirror continues here.
   * }
   */
  mirror(options: MirrorOptions = {}): AsyncGenerator<MirrorStep<Item>, void, undefined> {
    const known = requireKnown(options, ['since', 'every', 'signal', 'onError']);
    return mirror<Item>(this.#connection, this.#name, known);
  }
}

/** The names of search criteria. */
const searchCriteria = ['name', 'words', 'barcode', 'drug', 'published'];

/** Returns the options. @throws TypeError for an unknown one */
function requireKnown<Options extends object>(options: Options, known: readonly string[]): Options {
  const unknown = Object.keys(options).find((name) => !known.includes(name));
  if (unknown === undefined) return options;
  throw new TypeError(`Unknown option "${unknown}". Options: ${known.join(', ')}.`);
}

/** @throws TypeError for a criterion without a value */
function requireCriteria(criteria: object): void {
  for (const [name, value] of Object.entries(criteria))
    if (value === undefined || value === null)
      throw new TypeError(`${name} is ${value}. Without a value, every record would match.`);
}

function versioned<Item>(
  version: number | undefined,
  start: (read: ReadVersion) => AsyncGenerator<Item, void, undefined>,
): Versioned<Item> {
  const read: ReadVersion = { version, digest: undefined };
  let isRead = false;
  return {
    [Symbol.asyncIterator]() {
      if (isRead) throw new TypeError('A result can be read once. Call the method again to read it again.');
      isRead = true;
      return start(read);
    },
    get version() {
      return read.version;
    },
    get digest() {
      return read.digest;
    },
  };
}
