// The OpenAPI 3.1 document: the routes of each collection, and the routes without a key.

import type { Collection } from '../../shared/collections/define.ts';
import { changeParameters, otherListParameters, paging, pin, searchParameters } from '../query.ts';
import {
  collectionSchemas,
  dataResponses,
  errorResponses,
  headerComponents,
  idParameterOf,
  linesHeaders,
  type Noun,
  nounOf,
  objectOf,
  type Part,
  parameterComponents,
  parametersOf,
  recordExample,
  requestIdHeader,
  responseComponents,
  schemaReference,
  searchParametersOf,
  sharedSchemas,
  singleOf,
  versionNumber,
} from './schemas.ts';

const description = `Read-only reference data. Every list is a **version**: complete, numbered, and replaced as a whole.

- Every data route requires a key, sent as \`Authorization: Bearer <key>\`. The operator of the service issues keys.
- Every route accepts \`GET\` and \`HEAD\`.
- An unknown, empty, malformed or repeated parameter is an error that names it.
- Checks run in this order: path, key, method, parameters, version, record.
- Every error has the same body; its message is a sentence that says what is wrong.
- Within this major version, members, routes, parameters and headers are only added.`;

/** Returns the document as JSON text. @param docsUrl absolute address of the page that shows it */
export function openApiText(collections: readonly Collection[], docsUrl: string): string {
  return JSON.stringify({
    openapi: '3.1.0',
    info: {
      title: 'medref',
      // The version of the API, not of the release.
      version: '1',
      summary: 'Medicinal products, drugs and companies: lists, searches and changes.',
      description,
      license: { name: 'MIT', identifier: 'MIT' },
      contact: { name: 'The operator who issued your key' },
    },
    externalDocs: { description: 'This document, to read and to try', url: docsUrl },
    // Relative to the document, so that it is right behind every proxy.
    servers: [{ url: '.', description: 'The server of this document' }],
    security: [{ key: [] }],
    tags: [
      ...collections.map((it) => ({ name: nounOf(it).many, description: it.describe })),
      { name: 'Health', description: 'Probes; without a key' },
      { name: 'Description', description: 'This document; without a key' },
    ],
    paths: Object.fromEntries([...collections.flatMap(collectionPaths), ...openPaths(collections)]),
    components: {
      securitySchemes: {
        key: { type: 'http', scheme: 'bearer', description: 'The key that the operator issued.' },
      },
      parameters: parameterComponents({ ...otherListParameters, ...changeParameters }),
      headers: headerComponents,
      responses: responseComponents,
      schemas: Object.assign({}, ...collections.map(collectionSchemas), sharedSchemas),
    },
  });
}

const enumeration = new Intl.ListFormat('en-GB', { type: 'disjunction' });

type Path = readonly [path: string, Part];

/** Returns GET and HEAD of a path: HEAD has the same header fields without a body. */
function withHead(get: Part): Part {
  const { operationId, summary, 'x-ndjson': _, responses, ...others } = get;
  const withoutBody = Object.entries(responses as Record<string, Part>).map(
    ([status, { content: _body, ...its }]) => [
      status,
      // Errors are components with a body.
      '$ref' in its ? { description: 'The error, without its body.', headers: requestIdHeader } : its,
    ],
  );
  const head = {
    ...others,
    operationId: `${operationId}Headers`,
    summary: `Only the header fields: ${String(summary).charAt(0).toLowerCase()}${String(summary).slice(1)}`,
    responses: Object.fromEntries(withoutBody),
  };
  return { get, head };
}

function collectionPaths(collection: Collection): Path[] {
  const { name } = collection;
  const noun = nounOf(collection);
  const path = (operation: Part) => withHead({ tags: [noun.many], ...operation });
  return [
    [`/${name}`, path(listOperation(collection, noun))],
    [`/${name}/changes`, path(changesOperation(collection, noun))],
    [`/${name}/versions`, path(versionsOperation(collection, noun))],
    [`/${name}/{id}`, path(recordOperation(collection, noun))],
  ];
}

function listOperation(collection: Collection, { one, many }: Noun): Part {
  const example = recordExample(collection);
  const searches = Object.keys(searchParameters(collection)).map((name) => `\`${name}\``);
  return {
    operationId: `list${many}`,
    summary: `List ${many.toLowerCase()}: all, by search, or by ids`,
    description:
      `Sorted as in the source; with \`name\` or \`words\`, by name; with \`ids\`, as you listed them. ` +
      `Search by ${enumeration.format(searches)}${searches.length > 1 ? '; several are combined with AND' : ''}. ` +
      'With `Accept: application/x-ndjson` the response is the whole list, one record per line, all of one version; ' +
      'then only `version` is accepted.',
    parameters: [...searchParametersOf(collection), ...parametersOf(otherListParameters)],
    responses: dataResponses(
      {
        description: 'A page.',
        content: json(schemaReference(`${one}List`), listExample(collection, '', example)),
        digests: 'lines',
      },
      [410],
    ),
    // Not a second media type of the response: generated clients would return a list or a text.
    'x-ndjson': {
      description: 'The response to `Accept: application/x-ndjson`: all records of one version.',
      headers: linesHeaders,
      content: {
        'application/x-ndjson': {
          schema: { type: 'string', description: `Each line is a ${one} as JSON.` },
          'x-line-schema': schemaReference(one),
          ...(example !== undefined && { example: `${JSON.stringify(example)}\n` }),
        },
      },
    },
  };
}

function recordOperation(collection: Collection, { one }: Noun): Part {
  const example = recordExample(collection);
  return {
    operationId: `get${one}`,
    summary: `Get one ${one.toLowerCase()} by its id`,
    description: 'Reads the live version, or the kept one that `version` names.',
    parameters: [idParameterOf(collection), ...parametersOf(pin)],
    responses: dataResponses(
      {
        description: 'The record.',
        content: json(
          singleOf(schemaReference(one)),
          example !== undefined && { data: example, success: true },
        ),
        digests: 'none',
      },
      [404, 410],
    ),
  };
}

function changesOperation(collection: Collection, { one }: Noun): Part {
  const record = recordExample(collection);
  const change = record === undefined ? undefined : { id: 1, change: 'changed', record };
  return {
    operationId: `list${one}Changes`,
    summary: 'List changes since a version',
    description:
      'Sorted by id; each id whose record differs from its record at version `since`. The list ends at the live version, ' +
      'or at `version`; `Medref-Version` says which, and the links keep it. ' +
      '410: `since` is unknown, newer than live, or over 100 versions old. Read the whole list again.',
    parameters: parametersOf(changeParameters),
    responses: dataResponses(
      {
        description: 'A page of changes.',
        content: json(schemaReference(`${one}ChangeList`), listExample(collection, '/changes', change)),
        digests: 'all',
      },
      [410],
    ),
  };
}

function versionsOperation(collection: Collection, { one }: Noun): Part {
  const kept = {
    version: 20261122030000,
    publishedAt: '2026-11-22T03:00:08.000Z',
    totalCount: 5000,
    live: true,
    digest: {
      list: '47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=',
      set: 'AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=',
    },
  };
  return {
    operationId: `list${one}Versions`,
    summary: 'List the kept versions, newest first',
    description: 'A request with `version` can read each of them. Their digests verify copies.',
    parameters: parametersOf(paging),
    responses: dataResponses(
      {
        description: 'A page of versions.',
        content: json(schemaReference('KeptVersionList'), listExample(collection, '/versions', kept)),
        digests: 'all',
      },
      [],
    ),
  };
}

/** Returns a list with one element as an example, if there is an example of an element. */
function listExample({ name }: Collection, below: string, element: unknown): Part | false {
  if (element === undefined) return false;
  const link = { href: `https://medref.example/${name}${below}?page=1&per-page=200` };
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

/** Returns the routes without a key. */
function openPaths(collections: readonly Collection[]): Path[] {
  const versionOrNull = {
    ...versionNumber,
    type: ['integer', 'null'],
    description: '`null` without a live version.',
  };
  const versions = Object.fromEntries(collections.map(({ name }) => [name, versionOrNull]));
  const numbers = Object.fromEntries(collections.map(({ name }) => [name, 20261122030000]));
  const warnings = {
    type: 'array',
    items: { type: 'string', description: 'A sentence.' },
    description: 'Settings of Redis that can lose data.',
  };
  const live = singleOf(
    objectOf({ status: { type: 'string', const: 'live', description: 'The process runs.' } }),
  );
  const ready = singleOf(
    objectOf({
      status: { type: 'string', const: 'ready', description: 'A version is live.' },
      versions: { ...objectOf(versions), description: 'The live version of each collection.' },
      warnings,
    }),
  );
  return [
    openPath('/health/live', {
      operation: {
        ...{ tags: ['Health'], operationId: 'getLive', summary: 'Check whether the process runs' },
        description: 'For liveness probes. It does not ask Redis.',
      },
      response: fresh('The process runs.', json(live, { data: { status: 'live' }, success: true })),
      errors: errorResponses([]),
    }),
    openPath('/health/ready', {
      operation: {
        ...{ tags: ['Health'], operationId: 'getReady', summary: 'Check whether the service has data' },
        description: 'For readiness probes: 503 without Redis, and until the first publication.',
      },
      response: fresh(
        'Redis replies, and a collection has a live version; `null` for a collection without one.',
        json(ready, { data: { status: 'ready', versions: numbers, warnings: [] }, success: true }),
      ),
      errors: errorResponses([500, 503]),
    }),
    openPath('/openapi.json', {
      operation: {
        ...{ tags: ['Description'], operationId: 'getOpenApi', summary: 'Get this document' },
        description: 'OpenAPI 3.1 as JSON.',
      },
      response: {
        200: {
          description: 'The OpenAPI document; `/docs` shows it.',
          headers: { ETag: { $ref: '#/components/headers/ETag' }, ...cacheControl('no-cache') },
          content: { 'application/json': { schema: { type: 'object' } } },
        },
        304: { description: 'Your cached document is current.', headers: requestIdHeader },
      },
      errors: errorResponses([]),
    }),
  ];
}

/** Returns a 200 that may not be cached. */
function fresh(description: string, content: Part): Part {
  return { 200: { description, headers: cacheControl('no-store'), content } };
}

function cacheControl(value: string): Part {
  return {
    'Cache-Control': {
      required: true,
      description: 'Whether the response may be cached.',
      schema: { type: 'string', const: value },
    },
    ...requestIdHeader,
  };
}

function openPath(
  path: string,
  { operation, response, errors }: { operation: Part; response: Part; errors: Part },
): Path {
  return [path, withHead({ ...operation, security: [], responses: { ...response, ...errors } })];
}
