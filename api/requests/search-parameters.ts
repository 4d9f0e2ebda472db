// The parameters of a search: which ones a collection takes, and what they must look like.

import type { Collection } from '../../shared/collections/collection.ts';
import { fold } from '../../shared/formats/fold.ts';
import type { Search } from '../../shared/formats/search-entries.ts';
import { badParameter, countTakes, type Parameters, readCount } from './parameters.ts';

/** The longest name that is searched for, in characters. */
export const maxNameLength = 200;

/** What a barcode is to a search. */
export const barcodeForm = /^[0-9]{12,13}$/;

/** The parameters by which a collection is searched, and what each takes. */
export function searchParameters(collection: Collection): Readonly<Record<string, string>> {
  return {
    name: nameTakes,
    ...(collection.barcodesOf && { barcode: barcodeTakes }),
    ...(collection.drugOf && { drug: countTakes }),
  };
}

const nameTakes = `the beginning of a name: 1 to ${maxNameLength} characters, none of them a control character`;
const barcodeTakes = '12 or 13 digits';

/** Unicode's control characters but for those that are white space, and halves of surrogate pairs. */
const notInNames = /(?![\s\u0085])[\p{Cc}\p{Cs}]/u;

/** The search that is asked for; `null` where none is. @throws Boom 400 naming the parameter that is malformed */
export function readSearch(parameters: Parameters): Search | null {
  const name = parameters.get('name');
  const barcode = parameters.get('barcode');
  const drug = readCount(parameters, 'drug', undefined);
  if (name === undefined && barcode === undefined && drug === undefined) return null;
  if (name !== undefined) checkName(name);
  if (barcode !== undefined && !barcodeForm.test(barcode))
    throw badParameter('barcode', `is ${JSON.stringify(barcode)}`, barcodeTakes);
  return { name, barcode, drug };
}

function checkName(name: string): void {
  // White space as folding sees it: U+0085 too, which is none to JavaScript.
  const { length } = [...name.replaceAll('\u0085', ' ').trim()];
  if (length === 0) throw badParameter('name', 'is blank', nameTakes);
  if (fold(name) === '') throw badParameter('name', 'is nothing that a search compares', nameTakes);
  if (length > maxNameLength) throw badParameter('name', `has ${length} characters`, nameTakes);
  if (notInNames.test(name)) throw badParameter('name', 'has a control character', nameTakes);
}
