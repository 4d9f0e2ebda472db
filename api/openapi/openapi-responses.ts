// What requests are answered with, as OpenAPI describes it: headers, bodies, and every error by its status.

import type { Part } from './openapi-parameters.ts';
import { reference, versionNumber } from './openapi-schemas.ts';

const base64 = '[A-Za-z0-9+/]{43}=';

const header = (description: string, schema: Part): Part => ({ description, required: true, schema });

/** Headers to refer to; those of data answers first. */
export const headerComponents: Readonly<Record<string, Part>> = {
  'Medref-Version': header('The version that the answer is from.', versionNumber),
  'Last-Modified': header('When this version became live.', {
    type: 'string',
    pattern: '^[A-Z][a-z]{2}, [0-9]{2} [A-Z][a-z]{2} [0-9]{4} [0-9]{2}:[0-9]{2}:[0-9]{2} GMT$',
  }),
  ETag: header('Tells this answer from another one; to be sent back as `If-None-Match`.', {
    type: 'string',
    pattern: '^W/"[^"]+"$',
  }),
  'Cache-Control': header('Keep the answer, but ask each time whether it is still right.', {
    const: 'private, no-cache',
  }),
  Vary: header('What of a request the answer depends on besides its address.', {
    // With `Origin` where pages of some origins may read the answers.
    enum: ['Accept, Accept-Encoding, Authorization', 'Accept, Accept-Encoding, Authorization, Origin'],
  }),
  'Accept-Ranges': header('`Range` is ignored.', { const: 'none' }),
  'Medref-Digest': header('The digests of the whole version, by which a copy of it is proven.', {
    type: 'string',
    pattern: `^list=:${base64}:(, set=:${base64}:)?$`,
  }),
  'X-Request-Id': header(
    'What the request sent as this header, or else an id of its own; the log names it.',
    {
      type: 'string',
      pattern: '^[!-~]{1,128}$',
    },
  ),
};

/** The header of every answer. */
export const requestIdHeader: Part = { 'X-Request-Id': { $ref: '#/components/headers/X-Request-Id' } };

const ofData = ['Medref-Version', 'Last-Modified', 'ETag', 'Cache-Control', 'Vary', 'Accept-Ranges'];

const contentEncoding = {
  description:
    'Where the body is compressed: to clients that take it, bodies of more than 4 KiB and all lines.',
  schema: { const: 'gzip' },
};

const unbuffered = {
  description: '`no` where the answer is JSON Lines: an nginx in between hands it on as it comes.',
  schema: { type: 'string', const: 'no' },
};

/** Of answers to keys that have a rate (draft-ietf-httpapi-ratelimit-headers-10). */
const rateHeaders = {
  'RateLimit-Policy': {
    description: 'How many requests the key may make in a second, where it has a rate.',
    schema: { type: 'string', pattern: '^"default";q=[1-9][0-9]*;w=1$' },
  },
  RateLimit: {
    description:
      'How many it may make at once now, and in how many seconds it may make all of a second again.',
    schema: { type: 'string', pattern: '^"default";r=[0-9]+;t=[1-9][0-9]*$' },
  },
};

/** Whether an answer has the digests of its version. */
export type Digests = 'always' | 'with lines' | 'never';

/** 200 of a route with data, and 304. */
export function dataResponses(
  { description, content, digests }: { description: string; content: Part; digests: Digests },
  errors: readonly ErrorStatus[],
): Part {
  const encoded = { 'Content-Encoding': contentEncoding };
  const ofLines = digests === 'with lines' && { 'X-Accel-Buffering': unbuffered };
  return {
    200: {
      description,
      headers: { ...dataHeaders(digests), ...encoded, ...ofLines, ...rateHeaders },
      content,
    },
    304: {
      description: 'The client holds the answer, by what it sent as `If-None-Match` or `If-Modified-Since`.',
      headers: { ...dataHeaders(digests), ...rateHeaders },
    },
    ...errorResponses([400, 401, 403, ...errors, 429, 500, 503]),
  };
}

function dataHeaders(digests: Digests): Part {
  const names = digests === 'always' ? [...ofData, 'Medref-Digest'] : ofData;
  const references = names.map((name) => [name, { $ref: `#/components/headers/${name}` }]);
  const withLines = { 'Medref-Digest': { ...headerComponents['Medref-Digest'], required: false } };
  return {
    ...Object.fromEntries(references),
    ...(digests === 'with lines' && withLines),
    ...requestIdHeader,
  };
}

/** An error: its name, when it comes, a message, and headers of its own. */
interface ErrorTold {
  readonly name: string;
  readonly description: string;
  readonly message: string;
  readonly headers?: Part;
}

const retryAfter = {
  'Retry-After': header('Seconds to wait before asking again.', { type: 'integer', minimum: 1 }),
};

/** What routes may be answered with, by status; the rest, which any route may, is told as one. */
const errorsTold = {
  400: {
    name: 'Bad Request',
    description:
      'A parameter or an id that is unknown, empty, malformed, given twice or missing. The message names it.',
    message: 'The parameter page is "0"; it takes digits 0-9 alone, from 1 to 9007199254740991.',
  },
  401: {
    name: 'Unauthorized',
    description: 'No key, or one that is malformed, unknown, expired or revoked: the same for all five.',
    message: 'This needs a valid key, sent as "Authorization: Bearer <key>".',
    headers: { 'WWW-Authenticate': header('What the route asks for.', { const: 'Bearer realm="medref"' }) },
  },
  403: {
    name: 'Forbidden',
    description: 'The key was made for other collections. The message names them.',
    message: 'This key was made for products and drugs, and not for companies.',
  },
  404: {
    name: 'Not Found',
    description: 'No record has this id.',
    message: 'There is no record with the id 7 among the products.',
  },
  410: {
    name: 'Gone',
    description:
      'A `version` or a `since` that is not kept, or was never published. The message says what is kept.',
    message: 'Version 20261101030000 is not kept; kept are 20261122030000 and 20261121030000.',
  },
  429: {
    name: 'Too Many Requests',
    description: 'The key is over its rate limit.',
    message: 'This key may ask 10 times a second. Try again in 1 s.',
    headers: retryAfter,
  },
  500: {
    name: 'Internal Server Error',
    description: 'What does not pass by itself: the log of the service tells its operator.',
    message: 'The service has made a mistake; its log has what happened.',
  },
  503: {
    name: 'Service Unavailable',
    description:
      'What passes by itself: Redis is out of reach, nothing has been published yet, or too much is asked for.',
    message: 'No version of products has been published yet.',
    headers: retryAfter,
  },
} as const satisfies Readonly<Record<number, ErrorTold>>;

export type ErrorStatus = keyof typeof errorsTold;

/** References to errors, and to what every route may be answered with besides. */
export function errorResponses(statuses: readonly ErrorStatus[]): Part {
  const referred = statuses.map((status) => [status, responseReference(nameOf(errorsTold[status]))]);
  const others = responseReference('OtherError');
  return { ...Object.fromEntries(referred), '4XX': others, '5XX': others };
}

const nameOf = ({ name }: Pick<ErrorTold, 'name'>) => name.replaceAll(' ', '');

function responseReference(name: string): Part {
  return { $ref: `#/components/responses/${name}` };
}

/** Errors to refer to. */
export const responseComponents: Readonly<Record<string, Part>> = {
  ...Object.fromEntries(
    Object.entries<ErrorTold>(errorsTold).map(([status, { name, description, message, headers }]) => [
      nameOf({ name }),
      {
        description,
        headers: { ...headers, ...(isCharged(Number(status)) && rateHeaders), ...requestIdHeader },
        content: errorContent({ name, message, code: 0, status: Number(status) }),
      },
    ]),
  ),
  OtherError: {
    description:
      'Every other error has the same form: 404 for an unknown path; 405 with `Allow` for a method other than GET and ' +
      'HEAD; 408, 413, 417, 431, 501 and 505, and 400, for what is not HTTP as the service takes it.',
    headers: { ...rateHeaders, ...requestIdHeader },
    content: errorContent({
      ...{ name: 'Method Not Allowed', message: 'POST is not possible here; GET and HEAD are.' },
      ...{ code: 0, status: 405 },
    }),
  },
};

/** Whether a request with such an error was charged to the rate limit of its key. */
function isCharged(status: number): boolean {
  return status !== 401 && status !== 403;
}

function errorContent(data: Part): Part {
  return { 'application/json': { schema: reference('Error'), example: { success: false, data } } };
}
