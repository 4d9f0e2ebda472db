// The Joi rules that members of every collection share: ids, names and other text.
// Nothing is converted or repaired; see docs/API.md, "Valid records".

import Joi, {
  type AnySchema,
  type ArraySchema,
  type CustomHelpers,
  type ErrorReport,
  type NumberSchema,
  type StringSchema,
} from 'joi';

/** A JSON Schema (draft 2020-12), as consumers are told what they get. */
export type JsonSchema = Readonly<Record<string, unknown>>;

const maxNameLength = 10_000;

/** At least one character that leaves ink: not white space, a control, a format mark or a filler. */
const visibleCharacter = /[^\p{Cc}\p{Cf}\p{Cs}\p{Z}\p{Default_Ignorable_Code_Point}]/u;

/** An id: an integer from 1 to 2^53−1. */
export const id = rule<NumberSchema>(
  { 'id.range': `must be an integer from 1 to ${Number.MAX_SAFE_INTEGER}` },
  (value) => (Number.isSafeInteger(value) && (value as number) >= 1 ? null : 'id.range'),
  { type: 'integer', minimum: 1, maximum: Number.MAX_SAFE_INTEGER },
);

/** A name: at least one visible character, at most 10,000 characters, kept exactly as it came. */
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
  // No pattern for what is visible: readers of the schema in other languages do not know these Unicode classes.
  { type: 'string', minLength: 1, maxLength: maxNameLength },
);

/**
 * A Joi type of one rule. Rules put together from Joi's own would be judged one by one, and their messages, where they
 * are not Joi's, merged for each value: that took as long as all the rest of an import.
 * @param messages by code
 * @param judge gives the code of what is wrong with a value, or `null`
 * @param told what the rule says of itself where the schema is told as a JSON Schema
 */
export function rule<Schema extends AnySchema>(
  messages: Readonly<Record<string, string>>,
  judge: (value: unknown) => string | null,
  told: JsonSchema,
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
    jsonSchema: () => ({ ...told }),
  };
  return Joi.extend(extension)[type]();
}

/** An array of at most so many elements; how many there are is judged before they are. */
export function arrayOf(items: AnySchema, most: number): ArraySchema {
  const messages = { 'array.many': 'has {#length} elements, where at most {#most} are allowed' };
  const validate = (value: unknown[], helpers: CustomHelpers) => {
    const { length } = value;
    return length > most
      ? { value, errors: helpers.error('array.many', { length, most }) as unknown as ErrorReport[] }
      : { value };
  };
  const jsonSchema = () => ({ type: 'array', items: jsonSchemaOf(items), maxItems: most });
  const extension = { type: 'array', base: Joi.array(), messages, validate, jsonSchema };
  return (Joi.extend(extension).array() as ArraySchema).items(items);
}

/** A schema as a JSON Schema; that all members are required is a part of {@link judgement}, and not said by it. */
export function jsonSchemaOf(schema: AnySchema): JsonSchema {
  return schema['~standard'].jsonSchema.output({ target: 'draft-2020-12' });
}

/** Something that a record names. */
export interface Named {
  id: number;
  name: string;
}

/** An id with its name. */
export const named = Joi.object<Named, true>({ id, name });

/** Any other text; may be empty. */
export const text = Joi.string().allow('');

/** Text, or `null` where the source has none. */
export const textOrNull = text.allow(null);

/** How every record is judged: nothing is converted, every member is required, unknown ones are left to the validator. */
export const judgement: Joi.ValidationOptions = {
  convert: false,
  presence: 'required',
  allowUnknown: true,
  errors: { label: false },
};
