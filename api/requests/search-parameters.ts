// What a list is asked for besides a page: a search, or ids. Which parameters a collection takes, and what they must look like.

import type Boom from '@hapi/boom';
import { type Collection, type ExactSearch, exactTypes } from '../../shared/collections/define.ts';
import { fold } from '../../shared/store/fold.ts';
import type { Search } from '../../shared/store/search-index.ts';
import { maxPerPage } from './paging.ts';
import { badParameter, type Parameters, quoted } from './parameters.ts';

/** The longest name that is searched for, in characters. */
export const maxNameLength = 200;

/** The most ids that are asked for at once: as many records as a page has. */
export const maxIds = maxPerPage;

/** Ids; how many, and which, is judged when they are read. */
const idsForm = /^[0-9]+(?:,[0-9]+)*$/;

/** The parameters by which a collection is searched, and what each takes. */
export function searchParameters(collection: Collection): Readonly<Record<string, string>> {
  return {
    ...Object.fromEntries(Object.keys(collection.prefixSearches).map((name) => [name, prefixTakes(name)])),
    ...Object.fromEntries(
      Object.entries(collection.exactSearches).map(([name, { type }]) => [name, exactTypes[type].accepts]),
    ),
  };
}

/** The parameter by which records are asked for by their ids. */
export const idsParameter = {
  ids: `1 to ${maxIds} ids with commas between them, each once, in digits 0-9 alone, from 1 to ${Number.MAX_SAFE_INTEGER}, and no search beside it`,
} as const;

function prefixTakes(parameter: string): string {
  return `the beginning of a ${parameter}: 1 to ${maxNameLength} characters, none of them a control character`;
}

/** Unicode's control characters but for those that are white space, and halves of surrogate pairs. */
const notInNames = /(?![\s\u0085])[\p{Cc}\p{Cs}]/u;

/** Returns the search of a request; null if there is none. @throws Boom 400 naming the parameter that is malformed */
export function readSearch(collection: Collection, parameters: Parameters): Search | null {
  const prefix: Record<string, string> = {};
  const exact: Record<string, string> = {};
  for (const name in collection.prefixSearches) {
    const text = parameters.get(name);
    if (text === undefined) continue;
    checkPrefix(name, text);
    prefix[name] = text;
  }
  for (const name in collection.exactSearches) {
    const text = parameters.get(name);
    if (text === undefined) continue;
    const type = exactTypes[(collection.exactSearches[name] as ExactSearch).type];
    const value = type.parse(text);
    if (value === null) throw badParameter(name, `is ${JSON.stringify(quoted(text))}`, type.accepts);
    exact[name] = value;
  }
  const isNone = Object.keys(prefix).length + Object.keys(exact).length === 0;
  return isNone ? null : { prefix, exact };
}

/**
 * The ids that are asked for, in decimal digits without leading zeros; `null` where none are.
 * @throws Boom 400 when they are malformed, too many, or stand beside a search
 */
export function readIds(collection: Collection, parameters: Parameters): string[] | null {
  const text = parameters.get('ids');
  if (text === undefined) return null;
  const search = Object.keys(searchParameters(collection)).find((it) => parameters.has(it));
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

function checkPrefix(parameter: string, text: string): void {
  // White space as folding sees it: U+0085 too, which is none to JavaScript.
  const { length } = [...text.replaceAll('\u0085', ' ').trim()];
  if (length === 0) throw badParameter(parameter, 'is blank', prefixTakes(parameter));
  if (fold(text) === '')
    throw badParameter(parameter, 'is nothing that a search compares', prefixTakes(parameter));
  if (length > maxNameLength)
    throw badParameter(parameter, `has ${length} characters`, prefixTakes(parameter));
  if (notInNames.test(text)) throw badParameter(parameter, 'has a control character', prefixTakes(parameter));
}
