// The parameters of requests as joi schemas. An error names the parameter and its accepted values.

import Accept from '@hapi/accept';
import Boom from '@hapi/boom';
import type { Request } from '@hapi/hapi';
import Joi from 'joi';
import { type Collection, type ExactSearch, exactTypes } from '../shared/collections/define.ts';
import { fold, type Search } from '../shared/store/search-index.ts';
import { minWordLength, wordsOf } from '../shared/store/word-index.ts';
import { truncate } from '../shared/text.ts';

/** Parameters by name, in the order in which links carry them. */
export type Parameters = Readonly<Record<string, Joi.AnySchema>>;

/** The values of parameters, as their schemas return them. */
export type Values<P extends Parameters> = {
  readonly [Name in keyof P]: P[Name] extends Joi.AnySchema<infer Value> ? Value : never;
};

/** The query of a request. */
export interface Query<P extends Parameters> {
  readonly values: Values<P>;
  /** The decoded text of each parameter that the request has. */
  readonly given: Readonly<Record<string, string>>;
}

/**
 * Makes the schema of an optional parameter.
 * @param accepts continues a sentence: "it accepts …"
 * @param parse returns the value of a text; throws an Error whose message continues "The parameter x …"
 */
export function parameter<Value>(
  accepts: string,
  parse: (text: string) => Value,
): Joi.AnySchema<Value | undefined> {
  return Joi.string()
    .custom((text: string) => parse(text))
    .meta({ accepts }) as unknown as Joi.AnySchema<Value | undefined>;
}

/** Makes a parameter required. */
export function required<Value>(schema: Joi.AnySchema<Value | undefined>): Joi.AnySchema<Value> {
  return schema.required() as unknown as Joi.AnySchema<Value>;
}

function withDefault(schema: Joi.AnySchema<number | undefined>, value: number): Joi.AnySchema<number> {
  return schema.default(value) as unknown as Joi.AnySchema<number>;
}

/** Returns a parameter that accepts one of some texts. */
export function oneOf<Text extends string>(texts: readonly Text[]): Joi.AnySchema<Text | undefined> {
  return parameter(`one of ${texts.join(', ')}`, (text) => texts.find((it) => it === text) ?? isWrong(text));
}

/** Refuses a text. */
export function isWrong(text: string): never {
  throw new Error(`is ${JSON.stringify(quoted(text))}`);
}

const { MAX_SAFE_INTEGER } = Number;

function integerUpTo(max: number): (text: string) => number {
  return (text) => {
    const number = Number(text);
    return /^[0-9]+$/.test(text) && number >= 1 && number <= max ? number : isWrong(text);
  };
}

/** A number from 1 to 2^53−1. */
export const count = parameter(`a whole number from 1 to ${MAX_SAFE_INTEGER}`, integerUpTo(MAX_SAFE_INTEGER));

/** The most records of a page. */
export const maxPerPage = 200;

/** The page of a list. */
export const paging = {
  page: withDefault(count, 1),
  'per-page': withDefault(
    parameter(acceptsOf(count), (text) => Math.min(maxPerPage, integerUpTo(MAX_SAFE_INTEGER)(text))),
    maxPerPage,
  ),
} as const;

/** The page that a request asks for. */
export interface PageRequest {
  /** From 1; may lie past the end. */
  readonly page: number;
  /** From 1 to 200. */
  readonly perPage: number;
}

/** Returns the page that the values ask for. */
export function pageOf({ page, 'per-page': perPage }: Values<typeof paging>): PageRequest {
  return { page, perPage };
}

/** The version that a read is pinned to. */
export const pin = { version: count } as const;

/** The longest wait for a publication, in seconds. */
export const maxWait = 60;

const sinceAccepts = `${acceptsOf(count)}, or a date and time such as 2026-11-22T03:00:00Z (RFC 3339)`;

/** RFC 3339, section 5.6. */
const dateTime =
  /^(\d{4})-(\d\d)-(\d\d)[Tt](?:[01]\d|2[0-3]):[0-5]\d:(?:[0-5]\d|60)(?:\.\d+)?(?:[Zz]|[+-](?:[01]\d|2[0-3]):[0-5]\d)$/;

/** Returns a version number, or a time. */
function parseSince(text: string): number | Date {
  if (/^[0-9]+$/.test(text)) return integerUpTo(MAX_SAFE_INTEGER)(text);
  const [, year, month, day] = dateTime.exec(text) ?? isWrong(text);
  const isDay =
    Number(day) >= 1 && Number(day) <= new Date(Date.UTC(Number(year), Number(month), 0)).getUTCDate();
  // JavaScript has no leap seconds: the second before is the same version.
  const time = new Date(text.toUpperCase().replace(/:60/, ':59'));
  return isDay && !Number.isNaN(time.getTime()) ? time : isWrong(text);
}

/** The parameters of a list of changes. */
export const changeParameters = {
  since: required(parameter(sinceAccepts, parseSince)),
  wait: parameter(`seconds as a whole number from 1 to ${maxWait}`, integerUpTo(maxWait)),
  ...pin,
  ...paging,
} as const;

/** The most ids of a request: one page of the largest size has them all. */
export const maxIds = maxPerPage;

/** The parameters of every list besides its searches. */
export const otherListParameters = {
  ids: parameter(
    `1 to ${maxIds} different ids, separated by commas, each a whole number from 1 to ${MAX_SAFE_INTEGER}; not combined with a search`,
    parseIds,
  ),
  ...pin,
  ...paging,
} as const;

/** Returns ids in decimal digits without leading zeros. */
function parseIds(text: string): string[] {
  if (!/^[0-9]+(?:,[0-9]+)*$/.test(text)) isWrong(text);
  const ids = text.split(',').map((it) => it.replace(/^0+/, ''));
  if (ids.length > maxIds) throw new Error(`has ${ids.length} ids`);
  const seen = new Set<string>();
  for (const id of ids) {
    if (id === '' || Number(id) > MAX_SAFE_INTEGER) throw new Error(`has the id ${id || '0'}`);
    if (seen.has(id)) throw new Error(`has the id ${id} twice`);
    seen.add(id);
  }
  return ids;
}

/** The longest prefix of a name, in characters. */
export const maxNameLength = 200;

/** Returns the parameters by which a collection is searched. */
export function searchParameters({ prefixSearches, exactSearches, flagSearches }: Collection): Parameters {
  const prefix = Object.keys(prefixSearches).map((name) => [
    name,
    parameter(
      `a prefix of a ${name}: 1 to ${maxNameLength} characters without control characters`,
      parsePrefix,
    ),
  ]);
  const exact = Object.entries(exactSearches).map(([name, { type }]: [string, ExactSearch]) => {
    const { accepts, parse } = exactTypes[type];
    return [name, parameter(accepts, (text) => parse(text) ?? isWrong(text))];
  });
  const flags = Object.keys(flagSearches).map((name) => [name, flag]);
  return Object.fromEntries([...prefix, ['words', words], ...exact, ...flags]);
}

/** The parameter of a search by a flag. */
const flag = parameter('true or false', (text) =>
  text === 'true' || text === 'false' ? text === 'true' : isWrong(text),
);

/** The most words of a search. */
const maxWords = 8;

/** The parameter of a search by words. */
const words = parameter(
  `1 to ${maxWords} words of at least ${minWordLength} letters or digits each; not combined with name`,
  parseWords,
);

/** Returns folded words. */
function parseWords(text: string): string[] {
  if (notInNames.test(text)) throw new Error('has a control character');
  const found = wordsOf(text);
  if (found.length === 0) throw new Error('has no word');
  if (found.length > maxWords) throw new Error(`has ${found.length} words`);
  const short = found.find((word) => [...word].length < minWordLength);
  if (short !== undefined) throw new Error(`has the word ${JSON.stringify(short)}, which is too short`);
  return [...new Set(found)];
}

/** Control characters of Unicode except white space, and halves of surrogate pairs. */
const notInNames = /(?![\s\u0085])[\p{Cc}\p{Cs}]/u;

function parsePrefix(text: string): string {
  // `fold` treats U+0085 as white space; JavaScript does not.
  const { length } = [...text.replaceAll('\u0085', ' ').trim()];
  if (length === 0) throw new Error('is blank');
  if (fold(text) === '') throw new Error('is nothing that a search compares');
  if (length > maxNameLength) throw new Error(`has ${length} characters`);
  if (notInNames.test(text)) throw new Error('has a control character');
  return text;
}

/** Returns the search that the values ask for; `null` if there is none. @throws Boom 400 for words with a prefix */
export function searchOf(
  { prefixSearches, exactSearches, flagSearches }: Collection,
  values: Readonly<Record<string, unknown>>,
): Search | null {
  const part = (searches: Readonly<Record<string, unknown>>) => {
    const names = Object.keys(searches).filter((name) => values[name] !== undefined);
    return Object.fromEntries(names.map((name) => [name, values[name]]));
  };
  const [prefix, exact] = [part(prefixSearches), part(exactSearches)] as Record<string, string>[];
  const flags = part(flagSearches) as Record<string, boolean>;
  const [first] = Object.keys(prefix as object);
  const its = values['words'] as readonly string[] | undefined;
  if (its && first) throw badParameter('words', `cannot be combined with ${first}`, acceptsOf(words));
  if (!its && !first && Object.keys({ ...exact, ...flags }).length === 0) return null;
  return { prefix: prefix ?? {}, exact: exact ?? {}, words: its ?? [], flags };
}

/**
 * Makes the function that reads the query of a request. Each parameter may occur once, except `ids`.
 *
 * hapi's own parser is not used: it hides malformed percent-encoding, and accepts a part without a name.
 * @param route what accepts only these parameters, for messages
 * @returns a function that throws Boom 400 for an unknown, empty, malformed, repeated or missing parameter
 */
export function queryReader<P extends Parameters>(
  parameters: P,
  route = 'this route',
): (target: string) => Query<P> {
  const described = Object.entries(parameters).map(([name, schema]) => {
    const flags = (schema.describe().flags ?? {}) as {
      readonly presence?: string;
      readonly default?: unknown;
    };
    return { name, ...flags };
  });
  const needed = described.filter(({ presence }) => presence === 'required').map(({ name }) => name);
  const defaults = Object.fromEntries(described.map((it) => [it.name, it.default]));
  return (target) => {
    const given = readPairs(target, parameters, route);
    const values: Record<string, unknown> = { ...defaults };
    // Each schema validates alone: one schema for the whole object takes four times as long.
    for (const name in given) values[name] = parsed(name, given[name], parameters[name]);
    const missing = needed.find((name) => given[name] === undefined);
    if (missing) throw badParameter(missing, 'is missing', acceptsOf(parameters[missing]));
    return { values: values as Values<P>, given };
  };
}

function parsed(name: string, text: string | undefined, schema: Joi.AnySchema | undefined): unknown {
  const { value, error } = (schema as Joi.AnySchema).validate(text);
  if (error === undefined) return value;
  const context = error.details[0]?.context as { readonly error?: Error } | undefined;
  throw badParameter(name, context?.error?.message ?? 'is empty', acceptsOf(schema));
}

function readPairs(target: string, parameters: Parameters, route: string): Record<string, string> {
  const given: Record<string, string> = {};
  const query = queryOf(target);
  for (const pair of query === '' ? [] : query.split('&')) {
    const equals = pair.indexOf('=');
    const rawName = equals === -1 ? pair : pair.slice(0, equals);
    const name = decode(rawName);
    if (name === null || !Object.hasOwn(parameters, name))
      throw unknownParameter(name ?? rawName, { allowed: Object.keys(parameters), route });
    const accepts = () => acceptsOf(parameters[name]);
    const value = equals === -1 ? '' : decode(pair.slice(equals + 1));
    if (value === null) throw badParameter(name, 'is not percent-encoded UTF-8', accepts());
    const earlier = given[name];
    if (earlier !== undefined && name !== 'ids') throw badParameter(name, 'is given twice', accepts());
    given[name] = earlier === undefined ? value : `${earlier},${value}`;
  }
  return given;
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

function unknownParameter(
  name: string,
  { allowed, route }: { readonly allowed: readonly string[]; readonly route: string },
): Boom.Boom {
  const known = allowed.length === 0 ? 'none' : enumeration.format(allowed);
  return Boom.badRequest(
    `The parameter ${JSON.stringify(quoted(name))} is unknown; ${route} accepts ${known}.`,
  );
}

function acceptsOf(schema: Joi.AnySchema | undefined): string {
  const [meta] = (schema?.describe()['metas'] ?? []) as { readonly accepts: string }[];
  return meta?.accepts ?? 'text';
}

/** Returns the 400 for a parameter. @param what continues "The parameter x …" */
export function badParameter(name: string, what: string, accepts: string): Boom.Boom {
  return Boom.badRequest(`The parameter ${name} ${quoted(what)}; it accepts ${accepts}.`);
}

/** Returns the 400 for `ids` together with a search, if the request has both. */
export function requireNoSearch(collection: Collection, values: Readonly<Record<string, unknown>>): void {
  const search = Object.keys(searchParameters(collection)).find((name) => values[name] !== undefined);
  if (search)
    throw badParameter('ids', `cannot be combined with ${search}`, acceptsOf(otherListParameters.ids));
}

/** Returns an id without leading zeros; `null` if the text has other characters than digits, or is zero. */
export function idOf(text: string): string | null {
  return /^0*[1-9][0-9]*$/.test(text) ? text.replace(/^0+/, '') : null;
}

/** Returns the id in a path, without leading zeros. @throws Boom 400 if it is not digits, or zero */
export function readId(text: string): string {
  const id = idOf(text);
  if (id !== null) return id;
  throw Boom.badRequest(
    `The id ${JSON.stringify(quoted(text))} is not valid. An id is a whole number from 1.`,
  );
}

/** Returns text of a request as messages quote it. */
export function quoted(text: string): string {
  return truncate(text, 50);
}

/** A longer `Accept` is ignored: the time of @hapi/accept grows with the square of its length. */
const maxAcceptLength = 500;

/** Returns whether a client prefers a media type to `application/json`. */
export function prefersToJson({ raw: { req } }: Request, mediaType: string): boolean {
  const { accept } = req.headers;
  if (accept === undefined || accept.length > maxAcceptLength) return false;
  if (!accept.toLowerCase().includes(mediaType)) return false;
  try {
    // The preferred type comes with its parameters, which change nothing.
    return Accept.mediaType(accept, ['application/json', mediaType]).split(';', 1)[0] === mediaType;
  } catch {
    return false; // A malformed field counts as absent.
  }
}
