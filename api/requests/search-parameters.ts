// What a list is asked for besides a page: a search, or ids. Which parameters a collection takes, and what they must look like.

import type Boom from '@hapi/boom';
import type { Collection } from '../../shared/collections/define.ts';
import type { Search } from '../../shared/formats/search-entries.ts';
import { fold } from '../../shared/store/fold.ts';
import { maxPerPage } from './paging.ts';
import { badParameter, countTakes, type Parameters, quoted, readCount } from './parameters.ts';

/** The longest name that is searched for, in characters. */
export const maxNameLength = 200;

/** What a barcode is to a search: 12 or 13 digits, or a GTIN of 14 that stands for its last 13. */
export const barcodeForm = /^(?:[0-9]{12,13}|0[0-9]{13})$/;

/** The most ids that are asked for at once: as many records as a page has. */
export const maxIds = maxPerPage;

/** Ids; how many, and which, is judged when they are read. */
const idsForm = /^[0-9]+(?:,[0-9]+)*$/;

/** The parameters by which a collection is searched, and what each takes. */
export function searchParameters(collection: Collection): Readonly<Record<string, string>> {
  return {
    name: nameTakes,
    ...(collection.barcodesOf && { barcode: barcodeTakes }),
    ...(collection.drugOf && { drug: countTakes }),
  };
}

/** The parameter by which records are asked for by their ids. */
export const idsParameter = {
  ids: `1 to ${maxIds} ids with commas between them, each once, in digits 0-9 alone, from 1 to ${Number.MAX_SAFE_INTEGER}, and no search beside it`,
} as const;

const nameTakes = `the beginning of a name: 1 to ${maxNameLength} characters, none of them a control character`;
const barcodeTakes = '12 or 13 digits, or 14 that begin with 0';

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
  return { name, barcode: barcode?.slice(-13), drug };
}

/**
 * The ids that are asked for, in decimal digits without leading zeros; `null` where none are.
 * @throws Boom 400 when they are malformed, too many, or stand beside a search
 */
export function readIds(parameters: Parameters): string[] | null {
  const text = parameters.get('ids');
  if (text === undefined) return null;
  const search = ['name', 'barcode', 'drug'].find((it) => parameters.has(it));
  if (search) throw badIds(`stands beside ${search}`);
  if (!idsForm.test(text)) throw badIds(`is ${JSON.stringify(quoted(text))}`);
  const ids = text.split(',').map((it) => it.replace(/^0+/, ''));
  if (ids.length > maxIds) throw badIds(`has ${ids.length} ids`);
  const wrong = ids.find((it) => it === '' || Number(it) > Number.MAX_SAFE_INTEGER);
  if (wrong !== undefined) throw badIds(`has the id ${wrong || '0'}`);
  const seen = new Set<string>();
  for (const id of ids) {
    if (seen.has(id)) throw badIds(`has the id ${id} twice`);
    seen.add(id);
  }
  return ids;
}

function badIds(what: string): Boom.Boom {
  return badParameter('ids', what, idsParameter.ids);
}

function checkName(name: string): void {
  // White space as folding sees it: U+0085 too, which is none to JavaScript.
  const { length } = [...name.replaceAll('\u0085', ' ').trim()];
  if (length === 0) throw badParameter('name', 'is blank', nameTakes);
  if (fold(name) === '') throw badParameter('name', 'is nothing that a search compares', nameTakes);
  if (length > maxNameLength) throw badParameter('name', `has ${length} characters`, nameTakes);
  if (notInNames.test(name)) throw badParameter('name', 'has a control character', nameTakes);
}
