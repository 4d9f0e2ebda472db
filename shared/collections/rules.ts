// The joi rules that members of every collection share: ids, names and other text.
// No rule converts or repairs a value; see docs/API.md, "Valid records".

import Joi, {
  type AnySchema,
  type ArraySchema,
  type CustomHelpers,
  type ErrorReport,
  type NumberSchema,
  type StringSchema,
} from 'joi';

/** A JSON Schema (draft 2020-12) for consumers. */
export type JsonSchema = Readonly<Record<string, unknown>>;

const maxNameLength = 10_000;

/** At least one visible character: not white space, a control, a format mark or a filler. */
const visibleCharacter = /[^\p{Cc}\p{Cf}\p{Cs}\p{Z}\p{Default_Ignorable_Code_Point}]/u;

/** An id: an integer from 1 to 2^53−1. */
export const id = rule<NumberSchema>(
  { 'id.range': `must be an integer from 1 to ${Number.MAX_SAFE_INTEGER}` },
  (value) => (Number.isSafeInteger(value) && (value as number) >= 1 ? null : 'id.range'),
  { type: 'integer', minimum: 1, maximum: Number.MAX_SAFE_INTEGER },
);

/** A name: at least one visible character, at most 10,000 characters, stored unchanged. */
export const name = rule<StringSchema>(
  {
    'name.type': 'must be a string',
    'name.invisible': 'must have at least one visible character',
    'name.long': `must be at most ${maxNameLength} characters long`,
  },
  (value) => {
    if (typeof value !== 'string') return 'name.type';
    if (!visibleCharacter.test(value)) return 'name.invisible';
    return value.length > maxNameLength && [...value].length > maxNameLength ? 'name.long' : null;
  },
  // No pattern for visible characters: few languages support these Unicode classes in regular expressions.
  { type: 'string', minLength: 1, maxLength: maxNameLength },
);

/**
 * Makes a joi type with one rule. Combined joi rules are checked one by one, and joi merges custom messages for each value: that
 * took as long as the rest of an import.
 * @param messages by code
 * @param judge returns the code of a value's error, or `null`
 * @param json the rule as JSON Schema
 */
export function rule<Schema extends AnySchema>(
  messages: Readonly<Record<string, string>>,
  judge: (value: unknown) => string | null,
  json: JsonSchema,
): Schema {
  const validate = (value: unknown, helpers: CustomHelpers) => {
    const code = judge(value);
    return code === null ? { value } : { value, errors: helpers.error(code) as unknown as ErrorReport[] };
  };
  const type = (Object.keys(messages)[0] as string).split('.')[0] as string;
  const extension = {
    type,
    base: Joi.any(),
    messages: { ...messages },
    validate,
    jsonSchema: (_schema: AnySchema, its: JsonSchema) => ({ ...its, ...json }),
  };
  return Joi.extend(extension)
    [type]()
    .meta({ accepts: (value: unknown) => judge(value) === null });
}

/** An array with at most so many elements; their number is checked before the elements. */
export function arrayOf(items: AnySchema, most: number): ArraySchema {
  const messages = { 'array.many': 'has {#length} elements; at most {#most} are allowed' };
  const validate = (value: unknown[], helpers: CustomHelpers) => {
    const { length } = value;
    return length > most
      ? { value, errors: helpers.error('array.many', { length, most }) as unknown as ErrorReport[] }
      : { value };
  };
  const jsonSchema = (_schema: AnySchema, its: JsonSchema) => ({
    ...its,
    ...{ type: 'array', items: jsonSchemaOf(items), maxItems: most },
  });
  const extension = { type: 'array', base: Joi.array(), messages, validate, jsonSchema };
  const accepts = ({ length }: unknown[]) => length <= most;
  return (Joi.extend(extension).array() as ArraySchema).items(items).meta({ accepts });
}

/** Returns a schema as JSON Schema. It does not say that all members are required: that is part of {@link judgement}. */
export function jsonSchemaOf(schema: AnySchema): JsonSchema {
  return schema['~standard'].jsonSchema.output({ target: 'draft-2020-12' });
}

/** An id with a name. */
export interface Named {
  id: number;
  name: string;
}

/** The schema of an id with a name. */
export const named = Joi.object<Named, true>({
  id: id.description('Stays the same from version to version.'),
  name: name.description('Exactly as in the source.'),
});

/** Text that may be empty. */
export const text = Joi.string().allow('');

/** Text that may be empty, or `null`. */
export const textOrNull = text.allow(null);

/** The joi options for records: nothing is converted, every member is required, and unknown members are left to the validator. */
export const judgement: Joi.ValidationOptions = {
  convert: false,
  presence: 'required',
  allowUnknown: true,
  errors: { label: false },
};
