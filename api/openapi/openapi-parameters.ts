// The parameters of requests as OpenAPI describes them: what they mean, and a schema of what they take.

import { type Collection, exactTypes } from '../../shared/collections/define.ts';
import type { JsonSchema } from '../../shared/collections/rules.ts';
import { maxPerPage } from '../requests/paging.ts';
import { maxWait } from '../requests/parameters.ts';
import type { TakenParameters } from '../requests/route-parameters.ts';
import { maxIds, maxNameLength } from '../requests/search-parameters.ts';

/** A part of the document. */
export type Part = Readonly<Record<string, unknown>>;

const count: JsonSchema = { type: 'integer', minimum: 1, maximum: Number.MAX_SAFE_INTEGER };

// None has a default or an example: pages on which requests are tried would send it, also where it is not taken.
const queries: Readonly<Record<string, Part>> = {
  page: {
    description: 'The page, from 1; the first one unless it is given. One beyond the last is empty.',
    schema: count,
  },
  'per-page': {
    description: `Records on a page: ${maxPerPage} unless it is given. More are reduced to ${maxPerPage}.`,
    schema: count,
  },
  version: {
    description: 'Answer from this kept version instead of the live one. The links of the answer keep it.',
    schema: count,
  },
  since: {
    description: 'The version that the client has: `Medref-Version` of an earlier answer.',
    required: true,
    schema: count,
  },
  wait: {
    description:
      'Where `since` is the live version, wait this many seconds for a publication; the answer comes at once with it. ' +
      'With `version` nothing is waited for.',
    schema: { type: 'integer', minimum: 1, maximum: maxWait },
  },
  ids: {
    description:
      'Only the records with these ids, in this order; those that no record has are left out. Not together with a search.',
    ...{ style: 'form', explode: false },
    schema: { type: 'array', items: count, minItems: 1, maxItems: maxIds, uniqueItems: true },
  },
};

const conditions: Readonly<Record<string, Part>> = {
  'If-None-Match': {
    description: 'Tags of answers that the client holds, or `*`: 304 where one is still right.',
    schema: { type: 'string' },
  },
  'If-Modified-Since': {
    description: '304 where it is exactly the `Last-Modified` of the answer. `If-None-Match` goes before it.',
    schema: { type: 'string' },
  },
};

const idParameter: Part = {
  ...{ name: 'id', in: 'path', required: true, description: 'The id of the record.' },
  schema: { type: 'integer', minimum: 1 },
  example: 1,
};

/** Returns the parameters by which a collection is searched. */
export function searchParametersOf({ prefixSearches, exactSearches }: Collection): Part[] {
  const prefixes = Object.entries(prefixSearches).map(([name, { describe }]) => ({
    ...{ name, in: 'query' },
    description:
      `${describe} Upper case, lower case and accents make no difference. ` +
      'Takes no control characters, and not white space alone.',
    schema: { type: 'string', minLength: 1, maxLength: maxNameLength },
  }));
  const exact = Object.entries(exactSearches).map(([name, { describe, type }]) => ({
    ...{ name, in: 'query', description: describe, schema: exactTypes[type].schema },
  }));
  return [...prefixes, ...exact];
}

/** All that routes with these tables take, to be referred to. @throws where a parameter has no description here */
export function parameterComponents(tables: readonly TakenParameters[]): Record<string, Part> {
  const taken = [...new Set(tables.flatMap((takes) => Object.keys(takes)))];
  return {
    id: idParameter,
    ...Object.fromEntries(taken.map((name) => [name, { name, in: 'query', ...describedQuery(name) }])),
    ...Object.fromEntries(
      Object.entries(conditions).map(([name, told]) => [name, { name, in: 'header', ...told }]),
    ),
  };
}

/** References to the parameters of a route that answers with validators. */
export function parametersOf(takes: TakenParameters, inPath: readonly 'id'[] = []): Part[] {
  const names = [...inPath, ...Object.keys(takes), ...Object.keys(conditions)];
  return names.map((name) => ({ $ref: `#/components/parameters/${name}` }));
}

function describedQuery(name: string): Part {
  const described = queries[name];
  if (!described)
    throw new Error(
      `The parameter ${name} is not described in openapi-parameters.ts: say there what it takes.`,
    );
  return described;
}
