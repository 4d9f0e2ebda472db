// The descriptions of responses in /openapi.json as compiled schemas, and checks of responses against them.

import { Ajv2020, type ValidateFunction } from 'ajv/dist/2020.js';
import addFormats from 'ajv-formats';
import { expect } from 'chai';
import { openApiText } from '../../api/openapi/document.ts';
import { servedCollections } from '../../shared/collections/collections.ts';

/** A reference, or the object that it refers to. */
type Maybe<Shape> = Shape & { readonly $ref?: string };

export interface Schema {
  readonly type?: string | readonly string[];
  readonly [keyword: string]: unknown;
}

export interface Parameter {
  readonly name: string;
  readonly in: 'path' | 'query' | 'header';
  readonly required?: boolean;
  readonly schema: Schema;
}

interface Header {
  readonly required?: boolean;
  readonly schema: Schema;
}

interface MediaType {
  readonly schema: Schema;
  readonly example?: unknown;
  readonly 'x-line-schema'?: Schema;
}

interface Response {
  readonly headers?: Readonly<Record<string, Maybe<Header>>>;
  readonly content?: Readonly<Record<string, MediaType>>;
}

export interface Operation {
  readonly operationId: string;
  readonly parameters?: readonly Maybe<Parameter>[];
  readonly 'x-ndjson'?: Response;
  readonly responses: Readonly<Record<string, Maybe<Response>>>;
}

export interface OpenApi {
  readonly openapi: string;
  readonly externalDocs: { readonly description: string; readonly url: string };
  readonly paths: Readonly<Record<string, { readonly get: Operation; readonly head: Operation }>>;
  readonly components: {
    readonly schemas: Readonly<Record<string, Schema>>;
    readonly responses: Readonly<Record<string, Response>>;
  };
}

/** A decoded response of any client. */
export interface HeldAnswer {
  readonly status: number;
  readonly headers: Headers;
  readonly text: string;
}

/** The document that the API of tests serves. */
export const openApi = JSON.parse(
  openApiText(
    servedCollections.map(({ collection }) => collection),
    'https://medref.test/docs',
  ),
) as OpenApi;

const ajv = new Ajv2020({ strict: true, allowUnionTypes: true, strictRequired: false });
addFormats.default(ajv);
ajv.addVocabulary(['x-line-schema']);
// A separate JSON Schema, since the document is not one.
ajv.addSchema({ $id: 'openapi', $defs: asJsonSchema(openApi.components.schemas) });

const errorSchema: Schema = { $ref: '#/components/schemas/Error' };

const compiled = new WeakMap<Schema, ValidateFunction>();

/** Expects a value to match a schema of the document. */
export function expectAsSchema(value: unknown, schema: Schema, what: string): void {
  const validate = compiled.get(schema) ?? ajv.compile(asJsonSchema(schema));
  compiled.set(schema, validate);
  if (!validate(value)) expect.fail(`${what}: ${ajv.errorsText(validate.errors)}`);
}

/** Forbids unknown members: the document allows members that later releases add, but the tests do not. */
function asJsonSchema<Shape>(it: Shape): Shape {
  const text = JSON.stringify(it).replaceAll('"#/components/schemas/', '"openapi#/$defs/');
  return JSON.parse(text, (_, value) =>
    value?.type === 'object' && value.properties ? { ...value, additionalProperties: false } : value,
  ) as Shape;
}

/** Returns the object to which a reference of the document refers, or the object itself. */
export function resolved<Shape>(it: Maybe<Shape>): Shape {
  if (it.$ref === undefined) return it;
  const steps = it.$ref.slice('#/'.length).split('/');
  return steps.reduce((so, step) => (so as Record<string, unknown>)[step], openApi as unknown) as Shape;
}

/** Returns the parameters of an operation with resolved references. */
export function parametersOf({ parameters = [] }: Operation): Parameter[] {
  return parameters.map((it) => resolved<Parameter>(it));
}

/** Returns the described path of a request target; `undefined` if there is none. */
export function describedPath(target: string): string | undefined {
  const [path = ''] = target.split(/[?#]/, 1);
  if (path in openApi.paths) return path;
  const withId = path.replace(/\/[^/]*$/, '/{id}');
  return withId in openApi.paths ? withId : undefined;
}

/** Header fields of every HTTP response, which no description repeats. */
const ofHttp = ['connection', 'keep-alive', 'date', 'transfer-encoding', 'content-length', 'content-type'];
/** Header fields that the document omits: those of hapi's errors, of fixed responses, and of every response, for browsers. */
const undescribed = [
  ...['cache-control', 'vary', 'content-encoding', 'allow'],
  ...['access-control-allow-origin', 'access-control-expose-headers'],
  ...['x-content-type-options', 'referrer-policy', 'strict-transport-security'],
];

/** Expects that the document describes a response to this request: status, header fields and body. */
export function expectAsDescribed(method: string, target: string, answer: HeldAnswer): void {
  const { status, text } = answer;
  const what = `${method} ${target}: ${status}`;
  const path = describedPath(target);
  if (path === undefined || !['GET', 'HEAD'].includes(method)) {
    if (status >= 400 && method !== 'HEAD') expectError(JSON.parse(text), status, what);
    return;
  }
  const { responses, 'x-ndjson': lines } = (openApi.paths[path] as { get: Operation }).get;
  const isLines = answer.headers.get('content-type')?.startsWith('application/x-ndjson');
  const found = isLines ? lines : (responses[status] ?? responses[`${Math.floor(status / 100)}XX`]);
  expect(found, `${what} is not described`).not.to.equal(undefined);
  const response = resolved<Response>(found as Maybe<Response>);
  expectHeaders(answer, response, what);
  if (method === 'HEAD' || status === 304) expect(text, what).to.equal('');
  else expectBody(answer, response, what);
}

function expectHeaders({ headers }: HeldAnswer, { headers: described = {} }: Response, what: string): void {
  for (const [name, it] of Object.entries(described)) {
    const { required, schema } = resolved<Header>(it);
    const value = headers.get(name);
    if (value === null) expect(required ?? false, `${what} has no ${name}`).to.equal(false);
    else
      expectAsSchema(schema.type === 'integer' ? Number(value) : value, schema, `${what} ${name}: ${value}`);
  }
  const names = Object.keys(described).map((it) => it.toLowerCase());
  const strange = [...headers.keys()].filter((it) => ![...names, ...ofHttp, ...undescribed].includes(it));
  expect(strange, `${what} has headers that are not described`).to.deep.equal([]);
}

function expectBody({ status, headers, text }: HeldAnswer, { content = {} }: Response, what: string): void {
  const [type = ''] = (headers.get('content-type') ?? '').split(';', 1);
  const described = content[type];
  expect(described, `${what} as ${type} is not described`).not.to.equal(undefined);
  const { schema, 'x-line-schema': ofLines } = described as MediaType;
  if (ofLines) {
    expect(text, what).to.match(/^$|\n$/);
    for (const line of text.split('\n').slice(0, -1)) expectAsSchema(JSON.parse(line), ofLines, what);
    return;
  }
  const body = JSON.parse(text) as unknown;
  expectAsSchema(body, schema, what);
  if (status >= 400) expectError(body, status, what);
}

function expectError(body: unknown, status: number, what: string): void {
  expectAsSchema(body, errorSchema, what);
  expect((body as { data: { status: number } }).data.status, what).to.equal(status);
}
