// The Joi rules that members of every collection share: ids, names and other text.
// Nothing is converted or repaired; see docs/DECISIONS.md, "What makes a record valid".

import Joi from 'joi';

const maxNameLength = 10_000;

/** At least one character that leaves ink: not white space, a control, a format mark or a filler. */
const visibleCharacter = /[^\p{Cc}\p{Cf}\p{Cs}\p{Z}\p{Default_Ignorable_Code_Point}]/u;

const idMessage = `must be an integer from 1 to ${Number.MAX_SAFE_INTEGER}`;

/** An id: an integer from 1 to 2^53−1. */
export const id = Joi.number().integer().min(1).max(Number.MAX_SAFE_INTEGER).messages({ '*': idMessage });

/** A name: at least one visible character, at most 10,000 characters, kept exactly as it came. */
export const name = Joi.string()
  .custom((value: string, helpers) => {
    if (!visibleCharacter.test(value)) return helpers.error('name.invisible');
    if (value.length > maxNameLength && [...value].length > maxNameLength) return helpers.error('name.long');
    return value;
  })
  .messages({
    'string.empty': 'must have at least one visible character',
    'name.invisible': 'must have at least one visible character',
    'name.long': `must be at most ${maxNameLength} characters long`,
  });

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
