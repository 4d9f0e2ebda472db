// What bodies are, as JSON Schemas: records by the schemas that validate them, and the envelopes around them.

import type { Collection } from '../../shared/collections/define.ts';
import { type JsonSchema, jsonSchemaOf } from '../../shared/collections/rules.ts';
import { maxPerPage } from '../requests/paging.ts';

/** What one record of a collection is called in the document, and several. */
export interface Noun {
  readonly one: string;
  readonly many: string;
}

/** `Company` and `Companies` of `companies`. */
export function nounOf({ name, singular }: Collection): Noun {
  const capital = (noun: string) => noun.charAt(0).toUpperCase() + noun.slice(1);
  return { one: capital(singular), many: capital(name) };
}

/** An object with these members, all of them required, and no others. */
export function objectOf(properties: Readonly<Record<string, JsonSchema>>, optional: readonly string[] = []) {
  const required = Object.keys(properties).filter((name) => !optional.includes(name));
  return { type: 'object', properties, required, additionalProperties: false };
}

/** A list of elements with its links. */
export function listOf(element: JsonSchema): JsonSchema {
  return objectOf({
    data: { type: 'array', items: element, maxItems: maxPerPage },
    _links: reference('Links'),
    _meta: reference('Meta'),
    success: { const: true },
  });
}

/** One thing in the envelope. */
export function singleOf(data: JsonSchema): JsonSchema {
  return objectOf({ data, success: { const: true } });
}

export function reference(name: string): JsonSchema {
  return { $ref: `#/components/schemas/${name}` };
}

/** A record as it is served, and an example of one where its collection has any. */
export function recordSchema(collection: Collection): JsonSchema {
  const example = recordExample(collection);
  const schema = withAllRequired(jsonSchemaOf(collection.schema));
  return { ...schema, ...(example !== undefined && { examples: [example] }) };
}

/** The example of a collection's records; `undefined` where it has none. */
export function recordExample({ schema }: Collection): unknown {
  const { examples = [] } = schema.describe() as { readonly examples?: readonly unknown[] };
  return examples[0];
}

/** As records are judged: every member is required, which the schemas leave to the judgement. */
function withAllRequired(schema: JsonSchema): JsonSchema {
  const { properties, items } = schema as {
    properties?: Readonly<Record<string, JsonSchema>>;
    items?: JsonSchema;
  };
  if (items) return { ...schema, items: withAllRequired(items) };
  if (!properties) return schema;
  const members = Object.entries(properties).map(([name, it]) => [name, withAllRequired(it)]);
  return { ...schema, properties: Object.fromEntries(members), required: Object.keys(properties) };
}

/** The schema of a version's number. */
export const versionNumber: JsonSchema = { type: 'integer', minimum: 1, maximum: Number.MAX_SAFE_INTEGER };

const link = objectOf({ href: { type: 'string', format: 'uri' } });
const whole = (minimum: number) => ({ type: 'integer', minimum });
const digest = { type: 'string', pattern: '^[A-Za-z0-9+/]{43}=$' };

/** Schemas that no collection is a part of. */
export const sharedSchemas: Readonly<Record<string, JsonSchema>> = {
  Links: {
    ...objectOf({ self: link, first: link, last: link, next: link, prev: link }, ['next', 'prev']),
    description:
      'Absolute addresses of pages. `next` is absent on the last page and beyond, `prev` on the first one.',
  },
  Meta: objectOf({
    totalCount: whole(0),
    pageCount: whole(0),
    currentPage: whole(1),
    perPage: { ...whole(1), maximum: maxPerPage },
  }),
  KeptVersion: {
    ...objectOf({
      version: versionNumber,
      publishedAt: { type: 'string', format: 'date-time' },
      totalCount: whole(0),
      live: { type: 'boolean' },
      digest: objectOf({ list: digest, set: { ...digest, type: ['string', 'null'] } }),
    }),
    description:
      'A version that is kept, and the digests by which a copy of it is proven: `list` of its lines, in base64; ' +
      '`set` of its records in any order, `null` where an older release published it.',
  },
  Error: objectOf({
    success: { const: false },
    data: objectOf({
      name: { type: 'string', description: 'The reason phrase of the status.' },
      message: { type: 'string', description: 'One plain sentence: what is wrong, and what is taken.' },
      code: { const: 0 },
      status: { type: 'integer', minimum: 400, maximum: 599 },
    }),
  }),
};

/** A change of a record: with the record as it is now, unless it was removed. */
export function changeSchema(record: JsonSchema): JsonSchema {
  const id = { type: 'integer', minimum: 1, maximum: Number.MAX_SAFE_INTEGER };
  return {
    oneOf: [
      objectOf({ id, change: { enum: ['added', 'changed'] }, record }),
      objectOf({ id, change: { const: 'removed' } }),
    ],
  };
}
