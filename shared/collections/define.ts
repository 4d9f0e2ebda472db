// What a collection is to the rest of the code: its name, what makes a record valid, what a record is found by.

import type Joi from 'joi';

/** One collection. A new one is a file beside this with such an object, and a line in collections.ts. */
export interface Collection {
  /** Plural noun: the route, the Redis keys and the settings are made of it. */
  readonly name: string;
  /** What a valid record is; the order of its members is the order in which they are served. Its example is shown to consumers. */
  readonly schema: Joi.ObjectSchema;
  /** Members that lead from a record to its id, outermost first. */
  readonly idPath: readonly string[];
  /** Members that lead from a record to the name by which it is searched. */
  readonly namePath: readonly string[];
  /** The barcodes by which a valid record is searched; absent where a collection has none. */
  readonly barcodesOf?: (record: unknown) => readonly string[];
  /** The id of the drug by which a valid record is searched; absent where a collection has none. */
  readonly drugOf?: (record: unknown) => number;
  /** Gives a value with that mended which the contract allows to come in another JSON type; the validator judges it. */
  readonly accept?: (value: unknown) => unknown;
  /** Collections that are made of this one's records, in the same import and under the same version numbers. */
  readonly derived?: readonly DerivedCollection[];
}

/** A collection that is made of another one's records; of those with the same id, the first one counts. */
export interface DerivedCollection {
  readonly collection: Collection;
  /** The derived record that a valid record holds. */
  readonly recordOf: (record: unknown) => unknown;
}

/** A collection that is served, and the one with whose versions it lives: itself, unless it is derived. */
export interface ServedCollection {
  readonly collection: Collection;
  readonly source: Collection;
}

/** The value at a path of members in a valid record. */
export function valueAt(record: unknown, path: readonly string[]): unknown {
  return path.reduce((value, member) => (value as Record<string, unknown>)[member], record);
}

/** The setting that holds a collection's upstream URL, such as `PRODUCTS_URL`. */
export function urlSetting(collection: string): string {
  return `${collection.toUpperCase()}_URL`;
}
