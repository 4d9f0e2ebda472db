// The components of the OpenAPI document: schemas of bodies, parameters, headers, and errors.

import { type Collection, exactTypes } from '../../shared/collections/define.ts';
import { type JsonSchema, jsonSchemaOf } from '../../shared/collections/rules.ts';
import { fault } from '../errors.ts';
import { maxIds, maxNameLength, maxPerPage, maxWait, type Parameters } from '../query.ts';

/** A part of the document. */
export type Part = Readonly<Record<string, unknown>>;

/** The name of one record of a collection in the document, and of several: `Company` and `Companies`. */
export interface Noun {
  readonly one: string;
  readonly many: string;
}

/** Returns the nouns of a collection. */
export function nounOf({ name, singular }: Collection): Noun {
  const capital = (noun: string) => noun.charAt(0).toUpperCase() + noun.slice(1);
  return { one: capital(singular), many: capital(name) };
}

/** Returns the schema of an object; all members but `optional` are required. Later releases may add members. */
export function objectOf(
  properties: Readonly<Record<string, JsonSchema>>,
  optional: readonly string[] = [],
): JsonSchema {
  const required = Object.keys(properties).filter((name) => !optional.includes(name));
  return { type: 'object', properties, required };
}

const success: JsonSchema = { type: 'boolean', const: true, description: '`true`; errors have `false`.' };

/** Returns the schema of a list in its envelope. */
export function listOf(element: JsonSchema): JsonSchema {
  return objectOf({
    data: {
      type: 'array',
      items: element,
      maxItems: maxPerPage,
      description: 'The elements of the page; none past the end.',
    },
    _links: schemaReference('Links'),
    _meta: schemaReference('Meta'),
    success,
  });
}

/** Returns the schema of a single value in its envelope. */
export function singleOf(data: JsonSchema): JsonSchema {
  return objectOf({ data, success });
}

export function schemaReference(name: string): JsonSchema {
  return { $ref: `#/components/schemas/${name}` };
}

const changedId: JsonSchema = {
  ...{ type: 'integer', minimum: 1, maximum: Number.MAX_SAFE_INTEGER },
  description: 'The id of the record.',
};

const count: JsonSchema = { type: 'integer', minimum: 1, maximum: Number.MAX_SAFE_INTEGER };

/** The schema of a version number. */
export const versionNumber = count;

/** Returns the example of a collection's records, or `undefined` if the schema has none. */
export function recordExample({ schema }: Collection): unknown {
  const { examples = [] } = schema.describe() as { readonly examples?: readonly unknown[] };
  return examples[0];
}

/** Returns the schemas of a collection: a record, a list, a change, and a list of changes. */
export function collectionSchemas(collection: Collection): Record<string, JsonSchema> {
  const { one } = nounOf(collection);
  const example = recordExample(collection);
  const record = schemaReference(one);
  return {
    [one]: {
      ...servedSchema(jsonSchemaOf(collection.schema)),
      ...(example !== undefined && { examples: [example] }),
    },
    [`${one}List`]: listOf(record),
    [`${one}Change`]: {
      oneOf: [
        objectOf({
          id: changedId,
          change: {
            type: 'string',
            enum: ['added', 'changed'],
            description: '`added`: the version `since` does not have the id.',
          },
          record,
        }),
        objectOf({
          id: changedId,
          change: { type: 'string', const: 'removed', description: 'The version has the id no longer.' },
        }),
      ],
    },
    [`${one}ChangeList`]: listOf(schemaReference(`${one}Change`)),
  };
}

/** Makes every member required, which the validator checks itself, and allows members that later releases add. */
function servedSchema(schema: JsonSchema): JsonSchema {
  const { properties, items, additionalProperties, ...others } = schema as {
    properties?: Readonly<Record<string, JsonSchema>>;
    items?: JsonSchema;
    additionalProperties?: boolean;
  };
  if (items) return { ...others, items: servedSchema(items) };
  if (!properties) return schema;
  const members = Object.entries(properties).map(([name, it]) => [name, servedSchema(it)]);
  return { ...others, properties: Object.fromEntries(members), required: Object.keys(properties) };
}

const link = (description: string) => ({
  ...objectOf({ href: { type: 'string', format: 'uri', description: 'An absolute URL.' } }),
  description,
});
const integer = (minimum: number) => ({ type: 'integer', minimum });
const base64 = '[A-Za-z0-9+/]{43}=';
const digest = { type: 'string', pattern: `^${base64}$` };

/** The schemas that do not depend on a collection. */
export const sharedSchemas: Readonly<Record<string, JsonSchema>> = {
  Links: {
    ...objectOf(
      {
        self: link('This page.'),
        first: link('The first page.'),
        last: link('The last page.'),
        next: link('The next page; absent on the last one.'),
        prev: link('The previous page; absent on the first one.'),
      },
      ['next', 'prev'],
    ),
    description: 'Absolute URLs of pages. The last page has no `next`, the first page no `prev`.',
  },
  Meta: {
    ...objectOf({
      totalCount: { ...integer(0), description: 'Elements of all pages.' },
      pageCount: { ...integer(0), description: '0 if there are no elements.' },
      currentPage: { ...integer(1), description: 'The requested page; it may be past the end.' },
      perPage: { ...integer(1), maximum: maxPerPage, description: 'Elements per page.' },
    }),
    description: 'The numbers of the page.',
  },
  KeptVersion: {
    ...objectOf({
      version: {
        ...versionNumber,
        description: 'Its number: the UTC time at which its import began, or a higher number.',
      },
      publishedAt: { type: 'string', format: 'date-time', description: 'When it went live.' },
      totalCount: { ...integer(0), description: 'Its records.' },
      live: { type: 'boolean', description: 'Whether requests without `version` read it.' },
      digest: {
        ...objectOf({
          list: { ...digest, description: 'SHA-256 of its NDJSON text.' },
          set: { ...digest, description: 'Sum modulo 2^256 of the SHA-256 of its records, in any order.' },
        }),
        description: 'Its digests, in base64; a copy of it must have them.',
      },
    }),
    description: 'A kept version with its digests.',
  },
  KeptVersionList: listOf(schemaReference('KeptVersion')),
  Error: {
    ...objectOf({
      success: { type: 'boolean', const: false, description: '`false`.' },
      data: {
        ...objectOf({
          name: { type: 'string', description: 'The reason phrase of the status.' },
          message: { type: 'string', description: 'One plain sentence: the error, and the accepted values.' },
          code: { type: 'integer', const: 0, description: 'Always 0.' },
          status: { type: 'integer', minimum: 400, maximum: 599, description: 'The status of the response.' },
        }),
        description: 'The error.',
      },
    }),
    description: 'The body of every error.',
  },
};

// Examples of optional parameters are in their schemas: pages that try requests would send other examples.
const queryParameters: Readonly<Record<string, Part>> = {
  page: {
    description: 'The page, from 1. A page past the end is empty.',
    schema: { ...count, default: 1 },
  },
  'per-page': {
    description: `Records per page. A higher number is reduced to ${maxPerPage}.`,
    schema: { ...count, default: maxPerPage },
  },
  version: {
    description: 'Reads this kept version instead of the live one. The links of the response keep it.',
    schema: count,
  },
  since: {
    description:
      'Your version: `Medref-Version` of an earlier response. Or a date and time (RFC 3339): the last version that was published until then.',
    required: true,
    schema: { oneOf: [count, { type: 'string', format: 'date-time' }] },
    example: 20261122030000,
  },
  wait: {
    description:
      'Long poll: holds the request until a new version is live, or this many seconds pass. With `version` it returns at once.',
    schema: { type: 'integer', minimum: 1, maximum: maxWait, examples: [30] },
  },
  ids: {
    description:
      'Only the records with these ids, in this order. Unknown ids are omitted. Not combined with a search.',
    style: 'form',
    explode: false,
    schema: {
      type: 'array',
      items: count,
      minItems: 1,
      maxItems: maxIds,
      uniqueItems: true,
      examples: [[3, 1, 2]],
    },
  },
};

const requestHeaders: Readonly<Record<string, Part>> = {
  'If-None-Match': {
    description: 'Your cached ETags, or `*`; 304 if one is current.',
    schema: { type: 'string' },
  },
  'If-Modified-Since': {
    description: 'Returns 304 if equal to `Last-Modified`. Ignored if `If-None-Match` is sent.',
    schema: { type: 'string' },
  },
  'Medref-Have': {
    description:
      'A version of this collection that you have, and its set digest, which you have verified. The operator sees it. A wrong one is ignored.',
    schema: {
      type: 'string',
      examples: ['20261122030000 AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA='],
    },
  },
};

/** Returns the parameters by which a collection is searched. */
export function searchParametersOf(collection: Collection): Part[] {
  const { prefixSearches, exactSearches, flagSearches } = collection;
  const record = recordExample(collection);
  const [example] = record === undefined ? [] : collection.nameOf(record).split(' ');
  const prefixes = Object.entries(prefixSearches).map(([name, { describe }]) => ({
    name,
    in: 'query',
    description: `${describe} Case and accents are ignored. Control characters are not accepted, nor is white space alone.`,
    schema: { type: 'string', minLength: 1, maxLength: maxNameLength, ...examplesOf(example) },
  }));
  const words = {
    name: 'words',
    in: 'query',
    description:
      'Only records whose name has, for each of these words, a word that begins with it, in any order. Case and accents are ignored. 1 to 8 words of at least 2 letters or digits; not combined with `name`.',
    schema: { type: 'string', minLength: 2, ...examplesOf(example) },
  };
  const exact = Object.entries(exactSearches).map(([name, { describe, type, valuesOf }]) => ({
    name,
    in: 'query',
    description: describe,
    schema: {
      ...exactTypes[type].schema,
      ...examplesOf(record === undefined ? undefined : valuesOf(record)[0]),
    },
  }));
  const flags = Object.entries(flagSearches).map(([name, { describe }]) => ({
    name,
    in: 'query',
    description: describe,
    schema: { type: 'boolean' },
  }));
  return [...prefixes, words, ...exact, ...flags];
}

function examplesOf(value: string | number | undefined): Part {
  return value === undefined ? {} : { examples: [value] };
}

/** Returns the id in a path, with an id of the example. */
export function idParameterOf(collection: Collection): Part {
  const record = recordExample(collection);
  const example = record === undefined ? {} : { example: collection.idOf(record) };
  const description = 'The id of the record.';
  return { name: 'id', in: 'path', required: true, description, schema: integer(1), ...example };
}

/** Returns the parameter components of these routes. @throws Error if a parameter has no description here */
export function parameterComponents(parameters: Parameters): Record<string, Part> {
  const queries = Object.keys(parameters).map((name) => {
    const described = queryParameters[name];
    if (!described) throw new Error(`Describe the parameter ${name} in api/openapi/schemas.ts.`);
    return [name, { name, in: 'query', ...described }];
  });
  const headers = Object.entries(requestHeaders).map(([name, it]) => [name, { name, in: 'header', ...it }]);
  return {
    ...Object.fromEntries(queries),
    ...Object.fromEntries(headers),
  };
}

/** Returns references to the parameters of a data route. */
export function parametersOf(parameters: Parameters): Part[] {
  const names = [...Object.keys(parameters), ...Object.keys(requestHeaders)];
  return names.map((name) => ({ $ref: `#/components/parameters/${name}` }));
}

const header = (description: string, schema: Part): Part => ({ description, required: true, schema });

/** The headers of responses. */
export const headerComponents: Readonly<Record<string, Part>> = {
  'Medref-Version': header('The version of the response.', versionNumber),
  'Last-Modified': header('When this version was published.', {
    type: 'string',
    pattern: '^[A-Z][a-z]{2}, [0-9]{2} [A-Z][a-z]{2} [0-9]{4} [0-9]{2}:[0-9]{2}:[0-9]{2} GMT$',
  }),
  ETag: header('Identifies this response; send it back as `If-None-Match`.', {
    type: 'string',
    pattern: '^W/"[^"]+"$',
  }),
  'Cache-Control': header('Cache the response, and revalidate it before each use.', {
    type: 'string',
    const: 'private, no-cache',
  }),
  Vary: header('Request headers that change the response.', {
    type: 'string',
    // With `Origin` if CORS_ORIGINS names some origins.
    enum: ['Accept, Accept-Encoding, Authorization', 'Accept, Accept-Encoding, Authorization, Origin'],
  }),
  'Accept-Ranges': header('`Range` is ignored.', { type: 'string', const: 'none' }),
  'Medref-Digest': header('The digests of the whole version; they verify a copy of it.', {
    type: 'string',
    pattern: `^list=:${base64}:(, set=:${base64}:)?$`,
  }),
  'X-Request-Id': header('The `X-Request-Id` of the request, or a generated id; the log has it, too.', {
    type: 'string',
    pattern: '^[!-~]{1,128}$',
  }),
};

function headerReference(name: string): Part {
  return { $ref: `#/components/headers/${name}` };
}

/** The header of every response. */
export const requestIdHeader: Part = { 'X-Request-Id': headerReference('X-Request-Id') };

const dataHeaders = [
  ...['Medref-Version', 'Last-Modified', 'ETag', 'Cache-Control', 'Vary', 'Accept-Ranges'],
  'X-Request-Id',
];

/** The headers of responses to keys with a rate (draft-ietf-httpapi-ratelimit-headers-10). */
const rateHeaders = {
  'RateLimit-Policy': {
    description: '`q`: requests per second that the key may make. Only for keys with a rate.',
    schema: { type: 'string', pattern: '^"default";q=[1-9][0-9]*;w=1$' },
  },
  RateLimit: {
    description: '`r`: requests left now. `t`: seconds until the full quota is back.',
    schema: { type: 'string', pattern: '^"default";r=[0-9]+;t=[1-9][0-9]*$' },
  },
};

const contentEncoding = {
  description: 'Present if the body is compressed: bodies over 4 KiB, for clients that accept gzip.',
  schema: { type: 'string', const: 'gzip' },
};

/** The headers of data responses besides those of all. */
function dataHeadersOf(digests: 'all' | 'lines' | 'none'): Part {
  return {
    ...Object.fromEntries(dataHeaders.map((name) => [name, headerReference(name)])),
    ...(digests === 'all' && { 'Medref-Digest': headerReference('Medref-Digest') }),
  };
}

/** The headers of a whole list as NDJSON. */
export const linesHeaders: Part = {
  ...dataHeadersOf('all'),
  'Content-Encoding': contentEncoding,
  'X-Accel-Buffering': {
    description: '`no`: nginx forwards the response without buffering.',
    schema: { type: 'string', const: 'no' },
  },
  ...rateHeaders,
};

/**
 * Returns the responses of a data route: 200, 304, and errors.
 * @param digests which responses have `Medref-Digest`; `lines`: the 304 of NDJSON
 */
export function dataResponses(
  {
    description,
    content,
    digests,
  }: { description: string; content: Part; digests: 'all' | 'lines' | 'none' },
  errors: readonly ErrorStatus[],
): Part {
  const headers = dataHeadersOf(digests);
  return {
    200: {
      description,
      headers: { ...headers, 'Content-Encoding': contentEncoding, ...rateHeaders },
      content,
    },
    304: {
      description: 'Your cached response is current.',
      headers: {
        ...headers,
        ...(digests === 'lines' && {
          'Medref-Digest': { ...headerComponents['Medref-Digest'], required: false },
        }),
        ...rateHeaders,
      },
    },
    ...errorResponses([400, 401, 403, ...errors, 429, 500, 503]),
  };
}

interface ErrorDefinition {
  readonly name: string;
  readonly description: string;
  /** An example. */
  readonly message: string;
  readonly headers?: Part;
}

const retryAfter = {
  'Retry-After': header('Seconds to wait before the next attempt.', { type: 'integer', minimum: 1 }),
};

/** The errors that routes name; `OtherError` describes the rest. */
const errors = {
  400: {
    name: 'Bad Request',
    description:
      'A parameter or an id is unknown, empty, malformed, repeated or missing. The message names it.',
    message: 'The parameter page is "0"; it accepts a whole number from 1 to 9007199254740991.',
  },
  401: {
    name: 'Unauthorized',
    description:
      'The key is absent, malformed, unknown, expired or revoked; the response does not say which.',
    message: 'A valid key is required. Send it as "Authorization: Bearer <key>".',
    headers: {
      'WWW-Authenticate': header('The required scheme.', { type: 'string', const: 'Bearer realm="medref"' }),
    },
  },
  403: {
    name: 'Forbidden',
    description: 'The key is not valid for this collection. The message names its collections.',
    message: 'This key is valid for products and drugs, not for companies.',
  },
  404: {
    name: 'Not Found',
    description: 'No record has this id.',
    message: 'No record of products has the id 7.',
  },
  410: {
    name: 'Gone',
    description:
      '`version` or `since` is no longer kept, or was never published. The message lists the kept versions.',
    message: 'Version 20261101030000 of products is not kept. Kept versions: 20261122030000, 20261121030000.',
  },
  429: {
    name: 'Too Many Requests',
    description: 'The key is over its rate limit.',
    message: 'This key is limited to 10 requests per second. Try again in 1 s.',
    headers: retryAfter,
  },
  500: {
    name: 'Internal Server Error',
    description: 'Server error. Retrying will not help. Report the `X-Request-Id`.',
    message: fault.message,
  },
  503: {
    name: 'Service Unavailable',
    description: 'Temporary. Retry after `Retry-After` seconds.',
    message: 'No version of products has been published yet.',
    headers: retryAfter,
  },
} as const satisfies Readonly<Record<number, ErrorDefinition>>;

export type ErrorStatus = keyof typeof errors;

/** Returns references to these errors, and to the errors that every route may return. */
export function errorResponses(statuses: readonly ErrorStatus[]): Part {
  const reference = (name: string) => ({ $ref: `#/components/responses/${name.replaceAll(' ', '')}` });
  const named = statuses.map((status) => [status, reference(errors[status].name)]);
  const others = reference('OtherError');
  return { ...Object.fromEntries(named), '4XX': others, '5XX': others };
}

/** The errors of all routes. */
export const responseComponents: Readonly<Record<string, Part>> = {
  ...Object.fromEntries(
    Object.entries<ErrorDefinition>(errors).map(([status, { name, description, message, headers }]) => [
      name.replaceAll(' ', ''),
      {
        description,
        headers: { ...headers, ...(isCharged(Number(status)) && rateHeaders), ...requestIdHeader },
        content: errorContent({ name, message, code: 0, status: Number(status) }),
      },
    ]),
  ),
  OtherError: {
    description:
      'Every other error has the same body: 404 for an unknown path; 405 with `Allow` for methods other than GET and HEAD; 400, 408, 413, 417, 431, 501 and 505 for HTTP that the service does not accept.',
    headers: { ...rateHeaders, ...requestIdHeader },
    content: errorContent({
      name: 'Method Not Allowed',
      message: 'POST is not allowed; use GET or HEAD.',
      code: 0,
      status: 405,
    }),
  },
};

/** Returns whether a request with this error was charged to the rate limit of its key. */
function isCharged(status: number): boolean {
  return status !== 401 && status !== 403;
}

function errorContent(data: Part): Part {
  return { 'application/json': { schema: schemaReference('Error'), example: { success: false, data } } };
}
