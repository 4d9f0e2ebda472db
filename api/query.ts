// The parameters of requests, strictly read: an error names the parameter and what it accepts.

import Accept from '@hapi/accept';
import Boom from '@hapi/boom';
import type { Request } from '@hapi/hapi';
import { type Collection, type ExactSearch, exactTypes } from '../shared/collections/define.ts';
import { fold, type Search } from '../shared/store/search-index.ts';
import { truncate } from '../shared/text.ts';

/** Reads the parameters of a request; each may be given once and none may be empty. */
export type Parameters = ReadonlyMap<string, string>;

/**
 * Reads the query of a request target.
 * @param target as it stands in the request line, such as `/products?page=2`
 * @param takes what each allowed parameter takes, by name
 * @throws Boom 400 naming the first parameter that is unknown, empty, malformed or given twice
 */
export function readParameters(target: string, takes: Readonly<Record<string, string>>): Parameters {
  const found = new Map<string, string>();
  const query = queryOf(target);
  for (const pair of query === '' ? [] : query.split('&')) {
    const equals = pair.indexOf('=');
    const rawName = equals === -1 ? pair : pair.slice(0, equals);
    const name = decode(rawName);
    if (name === null || !Object.hasOwn(takes, name))
      throw unknownParameter(name ?? rawName, Object.keys(takes));
    if (found.has(name)) throw badParameter(name, 'is given twice', takes[name]);
    const value = equals === -1 ? '' : decode(pair.slice(equals + 1));
    if (value === null) throw badParameter(name, 'is not percent-encoded UTF-8', takes[name]);
    if (value === '') throw badParameter(name, 'is empty', takes[name]);
    found.set(name, value);
  }
  return found;
}

/** What a count takes, for messages. */
export const countTakes = `digits 0-9 alone, from 1 to ${Number.MAX_SAFE_INTEGER}`;

/**
 * Reads a parameter that counts from 1.
 * @throws Boom 400 when it is not written in digits alone, is zero, or over 2^53−1
 */
export function readCount<Fallback>(
  parameters: Parameters,
  name: string,
  fallback: Fallback,
): number | Fallback {
  const text = parameters.get(name);
  if (text === undefined) return fallback;
  const count = Number(text);
  if (!/^[0-9]+$/.test(text) || count < 1 || count > Number.MAX_SAFE_INTEGER) {
    throw badParameter(name, `is ${JSON.stringify(quoted(text))}`, countTakes);
  }
  return count;
}

/** The longest that a request may ask to wait, in seconds. */
export const maxWait = 60;

/** The parameter by which a request waits for a publication, and what it takes. */
export const waitParameter = {
  wait: `a number of seconds in digits 0-9 alone, from 1 to ${maxWait}`,
} as const;

/** For how long a request asks to wait, in seconds; `undefined`: not at all. @throws Boom 400 */
export function readWait(parameters: Parameters): number | undefined {
  const text = parameters.get('wait');
  if (text === undefined) return undefined;
  const seconds = Number(text);
  if (!/^[0-9]+$/.test(text) || seconds < 1 || seconds > maxWait)
    throw badParameter('wait', `is ${JSON.stringify(quoted(text))}`, waitParameter.wait);
  return seconds;
}

/** The parameter that pins a read to a kept version, and what it takes. */
export const pinParameter = { version: countTakes } as const;

/** The version that a request is pinned to; `undefined`: the live one. @throws Boom 400 */
export function readPin(parameters: Parameters): number | undefined {
  return readCount(parameters, 'version', undefined);
}

/** The parameters of a request besides some, as they were given and in that order. */
export function otherParameters(
  parameters: Parameters,
  besides: Readonly<Record<string, string>>,
): Record<string, string | number> {
  const others: Record<string, string | number> = {};
  for (const [name, value] of parameters) if (!Object.hasOwn(besides, name)) others[name] = value;
  return others;
}

/** A parameter that a request must have. */
export function missingParameter(name: string, takes: string): Boom.Boom {
  return badParameter(name, 'is missing', takes);
}

/** The id in a path, without leading zeros. @throws Boom 400 when it is not digits alone, or zero */
export function readId(text: string): string {
  const digits = text.replace(/^0+/, '');
  if (/^[0-9]+$/.test(digits)) return digits;
  throw Boom.badRequest(
    `The id ${JSON.stringify(quoted(text))} is not one; an id takes digits 0-9 alone, from 1.`,
  );
}

function queryOf(target: string): string {
  const start = target.indexOf('?');
  const fragment = target.indexOf('#');
  if (start === -1 || (fragment !== -1 && fragment < start)) return '';
  return target.slice(start + 1, fragment === -1 ? undefined : fragment);
}

function decode(text: string): string | null {
  if (!/[%+]/.test(text)) return text;
  try {
    return decodeURIComponent(text.replaceAll('+', ' '));
  } catch {
    return null;
  }
}

const enumeration = new Intl.ListFormat('en-GB');

function unknownParameter(name: string, allowed: readonly string[]): Boom.Boom {
  const known = allowed.length === 0 ? 'it takes none' : `it takes ${enumeration.format(allowed)}`;
  return Boom.badRequest(`The parameter ${JSON.stringify(quoted(name))} is not known here; ${known}.`);
}

/** A parameter that is not as it must be. */
export function badParameter(name: string, what: string, takes: string | undefined): Boom.Boom {
  return Boom.badRequest(`The parameter ${name} ${quoted(what)}; it takes ${takes}.`);
}

/** Text from a request as messages repeat it. */
export function quoted(text: string): string {
  return truncate(text, 50);
}

/** The most records of a page. */
export const maxPerPage = 200;

/** The page a request asks for. */
export interface PageRequest {
  /** From 1; may lie beyond the last. */
  readonly page: number;
  /** From 1 to 200. */
  readonly perPage: number;
}

/** The parameters of paging and what they take. */
export const pagingParameters = { page: countTakes, 'per-page': countTakes } as const;

/** The page that the parameters ask for; `per-page` is reduced to 200. @throws Boom 400 */
export function readPageRequest(parameters: Parameters): PageRequest {
  return {
    page: readCount(parameters, 'page', 1),
    perPage: Math.min(maxPerPage, readCount(parameters, 'per-page', maxPerPage)),
  };
}

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

/** What parameters take, by their names. */
export type TakenParameters = Readonly<Record<string, string>>;

/** Those of a list, of a search in it, and of some of its records by their ids. */
export function listParameters(collection: Collection): TakenParameters {
  return { ...searchParameters(collection), ...otherListParameters };
}

/** Those of every list. */
export const otherListParameters: TakenParameters = { ...idsParameter, ...pinParameter, ...pagingParameters };

/** Those of a whole list as lines. */
export const lineParameters: TakenParameters = pinParameter;

export const recordParameters: TakenParameters = pinParameter;

export const changeParameters: TakenParameters = {
  ...{ since: countTakes, ...waitParameter },
  ...{ ...pinParameter, ...pagingParameters },
};

export const versionParameters: TakenParameters = pagingParameters;

/** A longer `Accept` is not looked at: what @hapi/accept takes for it grows with the square of its length. */
const maxAcceptLength = 500;

/** Whether a client names a media type, and would rather have it than `application/json`. */
export function prefersToJson({ raw: { req } }: Request, mediaType: string): boolean {
  const { accept } = req.headers;
  if (accept === undefined || accept.length > maxAcceptLength) return false;
  if (!accept.toLowerCase().includes(mediaType)) return false;
  try {
    // What is preferred comes with its parameters, which change nothing.
    return Accept.mediaType(accept, ['application/json', mediaType]).split(';', 1)[0] === mediaType;
  } catch {
    return false; // A malformed field is as good as none.
  }
}
