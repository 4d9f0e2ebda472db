// What a collection is to the rest of the code: its name, what makes a record valid, where its id stands.

import type Joi from 'joi';

/** One collection. A new one is a file beside this with such an object, and a line in collections.ts. */
export interface Collection {
  /** Plural noun: the route, the Redis keys and the settings are made of it. */
  readonly name: string;
  /** What a valid record is; the order of its members is the order in which they are served. */
  readonly schema: Joi.ObjectSchema;
  /** Members that lead from a record to its id, outermost first. */
  readonly idPath: readonly string[];
  /** Mends, in place, what the contract allows to come in another JSON type; the validator judges what is left. */
  readonly accept?: (value: unknown) => void;
}
