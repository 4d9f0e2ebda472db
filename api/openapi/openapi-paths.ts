// The routes as OpenAPI describes them: those of each collection, and those that need no key.

import type { Collection } from '../../shared/collections/define.ts';
import {
  changeParameters,
  lineParameters,
  otherListParameters,
  recordParameters,
  type TakenParameters,
  versionParameters,
} from '../requests/route-parameters.ts';
import { searchParameters } from '../requests/search-parameters.ts';
import { type Part, parametersOf, searchParametersOf } from './openapi-parameters.ts';
import { dataResponses, errorResponses, requestIdHeader } from './openapi-responses.ts';
import {
  type Noun,
  nounOf,
  objectOf,
  recordExample,
  reference,
  singleOf,
  versionNumber,
} from './openapi-schemas.ts';

/** The tables of parameters of all routes with data, but for searches. */
export const takenParameters: readonly TakenParameters[] = [
  otherListParameters,
  lineParameters,
  recordParameters,
  changeParameters,
  versionParameters,
];

/** All routes that the document describes, by their paths. */
export function pathsOf(collections: readonly Collection[]): Part {
  const ofData = collections.flatMap(collectionPaths);
  return Object.fromEntries([...ofData, ...openPaths(collections)]);
}

const enumeration = new Intl.ListFormat('en-GB', { type: 'disjunction' });

type Path = readonly [path: string, Part];

function collectionPaths(collection: Collection): Path[] {
  const { name } = collection;
  const noun = nounOf(collection);
  const about = { tags: [noun.many] };
  return [
    [`/${name}`, { get: { ...about, ...listOperation(collection, noun) } }],
    [`/${name}/changes`, { get: { ...about, ...changesOperation(collection, noun) } }],
    [`/${name}/versions`, { get: { ...about, ...versionsOperation(collection, noun) } }],
    [`/${name}/{id}`, { get: { ...about, ...recordOperation(collection, noun) } }],
  ];
}

function listOperation(collection: Collection, { one, many }: Noun): Part {
  const example = recordExample(collection);
  const searches = Object.keys(searchParameters(collection)).map((name) => `\`${name}\``);
  return {
    operationId: `list${many}`,
    summary: `${many}, page by page, or those that a search finds, or that have some ids`,
    description:
      `In the order of the source; with \`name\` in that of the names, with \`ids\` in theirs. ` +
      `A search is by ${enumeration.format(searches)}${searches.length > 1 ? '; with several, all must hold' : ''}. ` +
      'With `Accept: application/x-ndjson` the whole list comes, one record on each line, all of one version; it then ' +
      'takes no parameter but `version`.',
    parameters: [...searchParametersOf(collection), ...parametersOf(otherListParameters)],
    responses: dataResponses(
      {
        description: 'A page; or all records as lines.',
        content: {
          ...json(reference(`${one}List`), listExample(collection, '', example)),
          'application/x-ndjson': {
            schema: { type: 'string', description: `Each line is a ${one} as JSON.` },
            // OpenAPI 3.1 has no word for it.
            'x-line-schema': reference(one),
            ...(example !== undefined && { example: `${JSON.stringify(example)}\n` }),
          },
        },
        digests: 'with lines',
      },
      [410],
    ),
  };
}

function recordOperation(collection: Collection, { one }: Noun): Part {
  const example = recordExample(collection);
  return {
    operationId: `get${one}`,
    summary: `One ${one.toLowerCase()} by its id`,
    parameters: parametersOf(recordParameters, ['id']),
    responses: dataResponses(
      {
        description: 'The record.',
        content: json(singleOf(reference(one)), example !== undefined && { data: example, success: true }),
        digests: 'never',
      },
      [404, 410],
    ),
  };
}

function changesOperation(collection: Collection, { one }: Noun): Part {
  const record = recordExample(collection);
  const change = record !== undefined && { id: 1, change: 'changed', record };
  return {
    operationId: `list${one}Changes`,
    summary: 'What changed since a version',
    description:
      'Ordered by id: ids whose record at the end differs from their record at version `since`. The list ends at the live ' +
      'version, or at `version`; `Medref-Version` says which, and the links keep it. 410 means: read the whole list again.',
    parameters: parametersOf(changeParameters),
    responses: dataResponses(
      {
        description: 'A page of changes.',
        content: json(reference(`${one}ChangeList`), listExample(collection, '/changes', change)),
        digests: 'always',
      },
      [410],
    ),
  };
}

function versionsOperation(collection: Collection, { one }: Noun): Part {
  const kept = {
    ...{ version: 20261122030000, publishedAt: '2026-11-22T03:00:08.000Z', totalCount: 5000, live: true },
    digest: {
      list: '47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=',
      set: 'AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=',
    },
  };
  return {
    operationId: `list${one}Versions`,
    summary: 'The versions that are kept, the latest first',
    parameters: parametersOf(versionParameters),
    responses: dataResponses(
      {
        description: 'A page of versions.',
        content: json(reference('KeptVersionList'), listExample(collection, '/versions', kept)),
        digests: 'always',
      },
      [],
    ),
  };
}

/** A list with one element, or none where there is no example of it. */
function listExample({ name }: Collection, below: string, element: unknown): Part | false {
  if (element === undefined || element === false) return false;
  const href = `https://medref.example/${name}${below}?page=1&per-page=200`;
  const link = { href };
  return {
    data: [element],
    _links: { self: link, first: link, last: link },
    _meta: { totalCount: 1, pageCount: 1, currentPage: 1, perPage: 200 },
    success: true,
  };
}

function json(schema: Part, example: Part | false): Part {
  return { 'application/json': { schema, ...(example && { example }) } };
}

/** What is answered without a key. */
function openPaths(collections: readonly Collection[]): Path[] {
  const versionOrNull = { ...versionNumber, type: ['integer', 'null'] };
  const versions = Object.fromEntries(collections.map(({ name }) => [name, versionOrNull]));
  const numbers = Object.fromEntries(collections.map(({ name }) => [name, 20261122030000]));
  const live = singleOf(objectOf({ status: { const: 'live' } }));
  const warnings = {
    type: 'array',
    items: { type: 'string' },
    description: 'How Redis is set up in a way that can lose data.',
  };
  const ready = singleOf(objectOf({ status: { const: 'ready' }, versions: objectOf(versions), warnings }));
  return [
    [
      '/health/live',
      openPath({
        ...{ operationId: 'getLive', tag: 'Health', summary: 'Whether the process runs' },
        answer: fresh('The process runs.', json(live, { data: { status: 'live' }, success: true })),
        errors: errorResponses([]),
      }),
    ],
    [
      '/health/ready',
      openPath({
        ...{
          operationId: 'getReady',
          tag: 'Health',
          summary: 'Whether the service can answer, and from which versions',
        },
        answer: fresh(
          'Redis answers, and a collection has a live version; `null` where one has none.',
          json(ready, { data: { status: 'ready', versions: numbers, warnings: [] }, success: true }),
        ),
        errors: errorResponses([500, 503]),
      }),
    ],
    [
      '/openapi.json',
      openPath({
        ...{ operationId: 'getOpenApi', tag: 'Description', summary: 'This document' },
        answer: {
          200: {
            description: 'An OpenAPI document, as `/docs` shows it.',
            headers: {
              ETag: { $ref: '#/components/headers/ETag' },
              ...requestIdHeader,
              'Cache-Control': { required: true, schema: { const: 'no-cache' } },
            },
            content: { 'application/json': { schema: { type: 'object' } } },
          },
          304: { description: 'The client holds the document.', headers: requestIdHeader },
        },
        errors: errorResponses([]),
      }),
    ],
  ];
}

/** 200 that is not to be kept. */
function fresh(description: string, content: Part): Part {
  const headers = {
    'Cache-Control': { required: true, schema: { const: 'no-store' } },
    ...requestIdHeader,
  };
  return { 200: { description, headers, content } };
}

interface OpenOperation {
  readonly operationId: string;
  readonly tag: string;
  readonly summary: string;
  readonly answer: Part;
  readonly errors: Part;
}

function openPath({ operationId, tag, summary, answer, errors }: OpenOperation): Part {
  return { get: { tags: [tag], operationId, summary, security: [], responses: { ...answer, ...errors } } };
}
