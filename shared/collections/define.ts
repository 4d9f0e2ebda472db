// Defines a collection: its records, ids, searches and derived collections. Everything else follows from the definition.

import { createHash } from 'node:crypto';
import type Joi from 'joi';
import { type JsonSchema, jsonSchemaOf } from './rules.ts';

/** Member names that lead from a record to a value, such as `['product', 'id']`. */
export type Path = readonly string[];

/** Finds records by a prefix of a text. Both are folded, see docs/API.md. */
export interface PrefixSearch {
  readonly type: 'prefix';
  readonly path: Path;
  /** A sentence for consumers. */
  readonly describe: string;
}

/** Finds records by an exact value; a record may have several. */
export interface ExactSearch<R = unknown> {
  readonly type: keyof typeof exactTypes;
  /** Returns the values of a record, as text or as numbers. */
  valuesOf(record: R): readonly (string | number)[];
  /** A sentence for consumers. */
  readonly describe: string;
}

/** Finds records by a flag: `true` or `false`. */
export interface FlagSearch<R = unknown> {
  readonly type: 'flag';
  valueOf(record: R): boolean;
  /** A sentence for consumers. */
  readonly describe: string;
}

/** The values of an exact search's parameter. */
export interface ExactType {
  /** Continues a sentence: "the parameter drug accepts …". */
  readonly accepts: string;
  readonly schema: JsonSchema;
  /** Returns the value in stored form; `null` if the text is not a value. */
  parse(text: string): string | null;
}

const { MAX_SAFE_INTEGER } = Number;
const barcodeForm = /^(?:[0-9]{12,13}|0[0-9]{13})$/;

/** The types of exact searches. */
export const exactTypes = {
  id: {
    accepts: `a whole number from 1 to ${MAX_SAFE_INTEGER}`,
    schema: { type: 'integer', minimum: 1, maximum: MAX_SAFE_INTEGER },
    parse: (text) => {
      const id = Number(text);
      return /^[0-9]+$/.test(text) && id >= 1 && id <= MAX_SAFE_INTEGER ? String(id) : null;
    },
  },
  /** 12 or 13 digits. A GTIN-14 that starts with 0 counts as its last 13 digits. */
  barcode: {
    accepts: '12 or 13 digits, or 14 digits that start with 0',
    schema: { type: 'string', pattern: barcodeForm.source },
    parse: (text) => (barcodeForm.test(text) ? text.slice(-13) : null),
  },
} as const satisfies Readonly<Record<string, ExactType>>;

/** A collection as {@link defineCollection} accepts it. */
export interface CollectionDefinition<R> {
  /** Plural noun, used in the route, the Redis keys and the settings. */
  readonly name: string;
  /** The noun for one record. */
  readonly singular: string;
  /** A sentence for consumers. */
  readonly describe: string;
  /** The schema of a valid record. Members are served in its order, and consumers see its example. */
  readonly schema: Joi.ObjectSchema<R>;
  /** The path of a record's id. */
  readonly id: Path;
  /** Searches by query parameter; every collection has `name`. */
  readonly searchBy: { readonly name: PrefixSearch } & Readonly<
    Record<string, PrefixSearch | ExactSearch<R> | FlagSearch<R>>
  >;
  /** Converts members that may come in another JSON type; called before validation. */
  accept?(value: unknown): unknown;
  /** Collections made from the records of this one, in the same import and with the same version numbers. */
  readonly derived?: readonly DerivedCollection<R>[];
}

/** A collection made from the records of another; for records with the same id, the first one counts. */
export interface DerivedCollection<R = unknown> {
  readonly collection: Collection;
  /** Returns the derived record inside a valid record. */
  recordOf(record: R): unknown;
}

/** A collection with valid records of type R. */
export interface Collection<R = unknown> extends Omit<CollectionDefinition<R>, 'schema' | 'searchBy'> {
  readonly schema: Joi.ObjectSchema;
  readonly prefixSearches: Readonly<Record<string, PrefixSearch>>;
  readonly exactSearches: Readonly<Record<string, ExactSearch<R>>>;
  readonly flagSearches: Readonly<Record<string, FlagSearch<R>>>;
  readonly derived: readonly DerivedCollection<R>[];
  /** A digest of everything that determines an import: if it changes, an unmodified list is read again. */
  readonly revision: string;
  idOf(record: R): number;
  /** Returns the text by which a record is searched and displayed. */
  nameOf(record: R): string;
}

/** A served collection, and the collection whose versions it shares: itself, unless it is derived. */
export interface ServedCollection {
  readonly collection: Collection;
  readonly source: Collection;
}

/** Builds a collection from its definition. */
export function defineCollection<R>(definition: CollectionDefinition<R>): Collection<R> {
  const { searchBy, id, derived = [], schema, accept } = definition;
  const prefixSearches: Record<string, PrefixSearch> = {};
  const exactSearches: Record<string, ExactSearch<R>> = {};
  const flagSearches: Record<string, FlagSearch<R>> = {};
  for (const [name, search] of Object.entries<PrefixSearch | ExactSearch<R> | FlagSearch<R>>(searchBy)) {
    if (search.type === 'prefix') prefixSearches[name] = search;
    else if (search.type === 'flag') flagSearches[name] = search;
    else exactSearches[name] = search;
  }
  const derivedRules = derived.map(({ collection, recordOf }) => [collection.revision, recordOf]);
  const rules = [schema.describe(), jsonSchemaOf(schema), accept, searchBy, derivedRules];
  const text = JSON.stringify(rules, (_, value) => (typeof value === 'function' ? String(value) : value));
  return {
    ...definition,
    derived,
    prefixSearches,
    exactSearches,
    flagSearches,
    revision: createHash('sha256').update(text).digest('hex'),
    idOf: (record) => valueAt(record, id) as number,
    nameOf: (record) => valueAt(record, searchBy.name.path) as string,
  };
}

/** Returns the value of a valid record at a path. */
export function valueAt(record: unknown, path: Path): unknown {
  return path.reduce((value, member) => (value as Record<string, unknown>)[member], record);
}

/** Returns the setting with a collection's upstream URL, such as `PRODUCTS_URL`. */
export function urlSetting(collection: string): string {
  return `${collection.toUpperCase()}_URL`;
}
