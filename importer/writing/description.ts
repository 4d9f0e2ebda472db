// What a collection's schema says of the shape of a record, by Joi's own description of it.

import type { Collection } from '../../shared/collections/define.ts';

/** A value that the schema declares, with its members or the elements that it may have. */
export interface Description {
  readonly type: string;
  /** The members of an object, in the order in which they are served. */
  readonly keys?: Readonly<Record<string, Description>>;
  /** What an element of an array is; one description. */
  readonly items?: readonly Description[];
}

/** The description of a collection's records. */
export function describe({ schema }: Collection): Description {
  return schema.describe() as Description;
}
