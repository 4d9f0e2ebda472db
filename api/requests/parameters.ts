// In: the target of a request. Out: its parameters, strictly read; what is wrong is named with what it takes.

import Boom from '@hapi/boom';
import { truncate } from '../../shared/truncate.ts';

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
