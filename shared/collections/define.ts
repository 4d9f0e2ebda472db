// Defines a collection: its records, their ids, what they are found by and what is derived. All else follows from it.

import { createHash } from 'node:crypto';
import type Joi from 'joi';
import { type JsonSchema, jsonSchemaOf } from './rules.ts';

/** Members that lead from a record to a value, outermost first, such as `['product', 'id']`. */
export type Path = readonly string[];

/** Finds records by the beginning of a text, which is folded as docs/API.md says. */
export interface PrefixSearch {
  readonly type: 'prefix';
  readonly path: Path;
  /** One sentence for consumers. */
  readonly describe: string;
}

/** Finds records by a whole value; a record may have several. */
export interface ExactSearch<R = unknown> {
  readonly type: keyof typeof exactTypes;
  /** Returns the values of a record, as text or as numbers. */
  valuesOf(record: R): readonly (string | number)[];
  /** One sentence for consumers. */
  readonly describe: string;
}

/** What the parameter of an exact search accepts. */
export interface ExactType {
  /** Continues a sentence: "the parameter drug accepts …". */
  readonly accepts: string;
  readonly schema: JsonSchema;
  /** Returns the value as it is stored, or null if the text is not one. */
  parse(text: string): string | null;
}

const { MAX_SAFE_INTEGER } = Number;
const barcodeForm = /^(?:[0-9]{12,13}|0[0-9]{13})$/;

/** The types of exact searches. */
export const exactTypes = {
  id: {
    accepts: `digits 0-9 alone, from 1 to ${MAX_SAFE_INTEGER}`,
    schema: { type: 'integer', minimum: 1, maximum: MAX_SAFE_INTEGER },
    parse: (text) => {
      const id = Number(text);
      return /^[0-9]+$/.test(text) && id >= 1 && id <= MAX_SAFE_INTEGER ? String(id) : null;
    },
  },
  /** 12 or 13 digits, or a GTIN of 14 that stands for its last 13. */
  barcode: {
    accepts: '12 or 13 digits, or 14 that begin with 0',
    schema: { type: 'string', pattern: barcodeForm.source },
    parse: (text) => (barcodeForm.test(text) ? text.slice(-13) : null),
  },
} as const satisfies Readonly<Record<string, ExactType>>;

/** One collection, as {@link defineCollection} accepts it. */
export interface CollectionDefinition<R> {
  /** Plural noun: the route, the Redis keys and the settings are made of it. */
  readonly name: string;
  /** The noun for one record. */
  readonly singular: string;
  /** One sentence for consumers. */
  readonly describe: string;
  /** What a valid record is; the order of its members is the order in which they are served. Its example is shown to consumers. */
  readonly schema: Joi.ObjectSchema<R>;
  /** Where the id of a record is. */
  readonly id: Path;
  /** The searches by their query parameters; every collection is searched by `name`. */
  readonly searchBy: { readonly name: PrefixSearch } & Readonly<
    Record<string, PrefixSearch | ExactSearch<R>>
  >;
  /** Returns a value with that repaired which the contract allows to come in another JSON type, before it is validated. */
  accept?(value: unknown): unknown;
  /** Collections that are made of this one's records, in the same import and under the same version numbers. */
  readonly derived?: readonly DerivedCollection<R>[];
}

/** A collection that is made of another one's records; of those with the same id, the first one counts. */
export interface DerivedCollection<R = unknown> {
  readonly collection: Collection;
  /** Returns the derived record that a valid record holds. */
  recordOf(record: R): unknown;
}

/** One collection, whose records are of type R once they are valid. */
export interface Collection<R = unknown> extends Omit<CollectionDefinition<R>, 'schema' | 'searchBy'> {
  readonly schema: Joi.ObjectSchema;
  readonly prefixSearches: Readonly<Record<string, PrefixSearch>>;
  readonly exactSearches: Readonly<Record<string, ExactSearch<R>>>;
  readonly derived: readonly DerivedCollection<R>[];
  /** A digest of all that decides what a list becomes: if it changes, the same list is imported again. */
  readonly revision: string;
  idOf(record: R): number;
  /** Returns the text by which a record is searched and shown. */
  nameOf(record: R): string;
}

/** A collection that is served, and the one whose versions it shares: itself, unless it is derived. */
export interface ServedCollection {
  readonly collection: Collection;
  readonly source: Collection;
}

/** Makes a collection of its definition. */
export function defineCollection<R>(definition: CollectionDefinition<R>): Collection<R> {
  const { searchBy, id, derived = [], schema, accept } = definition;
  const prefixSearches: Record<string, PrefixSearch> = {};
  const exactSearches: Record<string, ExactSearch<R>> = {};
  for (const [name, search] of Object.entries<PrefixSearch | ExactSearch<R>>(searchBy)) {
    if (search.type === 'prefix') prefixSearches[name] = search;
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
    revision: createHash('sha256').update(text).digest('hex'),
    idOf: (record) => valueAt(record, id) as number,
    nameOf: (record) => valueAt(record, searchBy.name.path) as string,
  };
}

/** Returns the value at a path of members in a valid record. */
export function valueAt(record: unknown, path: Path): unknown {
  return path.reduce((value, member) => (value as Record<string, unknown>)[member], record);
}

/** Returns the name of the setting that holds a collection's upstream URL, such as `PRODUCTS_URL`. */
export function urlSetting(collection: string): string {
  return `${collection.toUpperCase()}_URL`;
}
