// The rules of products in plain joi, for the programs that medref is compared with.

import Joi from 'joi';

const named = Joi.object({
  id: Joi.number().integer().min(1).max(Number.MAX_SAFE_INTEGER),
  name: Joi.string().min(1).max(10_000).pattern(/\S/),
});

const barcodes = Joi.array()
  .max(1_000)
  .items(
    Joi.object({ barcode: Joi.string().pattern(/^[0-9]{12,13}$/), skrsStatus: Joi.string().allow('', null) }),
  );

const schema = Joi.object({
  ...{ product: named, drug: named, drugform: named, barcodes, published: Joi.boolean() },
});

const rules = { convert: false, presence: 'required', stripUnknown: true } as const;

/** A valid product. */
export interface PlainProduct {
  readonly product: { readonly id: number; readonly name: string };
  readonly drug: { readonly id: number; readonly name: string };
  readonly barcodes: readonly { readonly barcode: string }[];
}

/** Returns a valid product without unknown members; `null` for any other value. */
export function validProduct(value: unknown): PlainProduct | null {
  const { error, value: record } = schema.validate(value, rules);
  return error === undefined ? record : null;
}
