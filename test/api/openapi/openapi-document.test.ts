import { createConfig, lintFromString } from '@redocly/openapi-core';
import { Validator } from '@seriousme/openapi-schema-validator';
import { expect } from 'chai';
import Joi from 'joi';
import { openApiText } from '../../../api/openapi/document.ts';
import { parameterComponents, recordExample } from '../../../api/openapi/schemas.ts';
import { count } from '../../../api/query.ts';
import { sampleCompanies, sampleProducts } from '../../../demo/sample-catalogue.ts';
import { createValidator } from '../../../importer/validate.ts';
import { companies as companyCollection } from '../../../shared/collections/companies.ts';
import type { Collection } from '../../../shared/collections/define.ts';
import {
  drugs as drugCollection,
  products as productCollection,
} from '../../../shared/collections/products.ts';
import { id, name } from '../../../shared/collections/rules.ts';
import { type ApiAnswer, useApi } from '../../support/api.ts';
import { importRecords } from '../../support/importing.ts';
import { expectAsSchema, openApi, parametersOf } from '../../support/openapi.ts';
import { company, product } from '../../support/records.ts';
import { useRedis } from '../../support/redis-server.ts';

const text = JSON.stringify(openApi);

describe('the OpenAPI document', () => {
  it('is OpenAPI 3.1', async () => {
    const { valid, errors } = await new Validator().validate(JSON.parse(text));
    expect(valid, JSON.stringify(errors)).to.equal(true);
    expect(openApi.openapi).to.match(/^3\.1\./);
  });

  it("passes Redocly's linter without a warning, including its examples", async () => {
    const config = await createConfig({ extends: ['recommended-strict'] });
    const problems = await lintFromString({ source: text, absoluteRef: '/openapi.json', config });
    expect(problems.map(({ message, location: [at] }) => `${at?.pointer}: ${message}`)).to.deep.equal([]);
  });

  it('shows valid records of the sample catalogue', () => {
    const [product] = sampleProducts({ seed: 868_869, count: 1 });
    expect(recordExample(productCollection)).to.deep.equal(product);
    expect(recordExample(drugCollection)).to.deep.equal({ drug: product?.drug });
    expect([...sampleCompanies({ seed: 868_869, count: 2 })]).to.deep.include(
      recordExample(companyCollection),
    );
    for (const [collection, name] of recordSchemas)
      expectAsSchema(recordExample(collection), { $ref: `#/components/schemas/${name}` }, name);
  });

  it('allows members that later releases add', () => {
    expect(text).not.to.include('additionalProperties');
  });

  it('requires a description of every parameter', () => {
    expect(() => parameterComponents({ colour: count })).to.throw(
      'Describe the parameter colour in api/openapi/schemas.ts.',
    );
  });

  it('describes a collection without an example', async () => {
    const colours: Collection = {
      ...companyCollection,
      name: 'colours',
      singular: 'colour',
      schema: Joi.object({ id, name }),
    };
    const document = JSON.parse(openApiText([colours], 'https://medref.test/docs')) as typeof openApi;
    expect((await new Validator().validate({ ...document })).valid).to.equal(true);
    expect(Object.keys(document.paths)).to.include('/colours/{id}');
    expect(document.components.schemas['Colour']).to.have.all.keys(...['type', 'properties', 'required']);
    const { content } = document.paths['/colours']?.get.responses[200] ?? {};
    for (const mediaType of Object.values(content ?? {})) expect(mediaType).not.to.have.property('example');
  });
});

const recordSchemas: readonly (readonly [Collection, string])[] = [
  [productCollection, 'Product'],
  [drugCollection, 'Drug'],
  [companyCollection, 'Company'],
];

describe('the schema of a record', () => {
  const judged = (collection: Collection, schema: string, value: unknown) => {
    const { valid } = createValidator(collection)(value);
    const reported = () => expectAsSchema(value, { $ref: `#/components/schemas/${schema}` }, schema);
    return { valid, reported };
  };
  const named = (id: unknown, name: unknown) => ({ id, name });
  const withBarcode = (barcode: unknown, skrsStatus: unknown = null) => ({
    ...product(1),
    barcodes: [{ barcode, skrsStatus }],
  });
  const without = (record: object, member: string) =>
    Object.fromEntries(Object.entries(record).filter(([name]) => name !== member));
  const many = (count: number) => Array.from({ length: count }, () => product(1).barcodes[0]);

  const cases: [what: string, collection: Collection, schema: string, value: unknown][] = [
    ['a product', productCollection, 'Product', product(1)],
    ['a barcode of 13 digits', productCollection, 'Product', withBarcode('8690000000011')],
    ['a barcode of 11 digits', productCollection, 'Product', withBarcode('86900000001')],
    ['a barcode of letters', productCollection, 'Product', withBarcode('86900000000ab')],
    ['a status that is a number', productCollection, 'Product', withBarcode('869000000001', 1)],
    ['1,000 barcodes', productCollection, 'Product', { ...product(1), barcodes: many(1_000) }],
    ['1,001 barcodes', productCollection, 'Product', { ...product(1), barcodes: many(1_001) }],
    ['no flag', productCollection, 'Product', { ...product(1), published: 'true' }],
    ['the id 0', productCollection, 'Product', { ...product(1), product: named(0, 'A') }],
    ['the id 2^53', productCollection, 'Product', { ...product(1), product: named(2 ** 53, 'A') }],
    ['an id as text', productCollection, 'Product', { ...product(1), drug: named('1', 'A') }],
    ['an empty name', productCollection, 'Product', { ...product(1), drug: named(1, '') }],
    [
      'the longest name',
      productCollection,
      'Product',
      { ...product(1), drug: named(1, '😀'.repeat(10_000)) },
    ],
    ['a name too long', productCollection, 'Product', { ...product(1), drug: named(1, 'a'.repeat(10_001)) }],
    ...['product', 'drug', 'drugform', 'barcodes', 'published'].map(
      (member) =>
        [`no ${member}`, productCollection, 'Product', without(product(1), member)] as [
          string,
          Collection,
          string,
          unknown,
        ],
    ),
    ['a company', companyCollection, 'Company', company(1)],
    ['no official name', companyCollection, 'Company', { ...company(1), officialName: null }],
    ['no website', companyCollection, 'Company', { ...company(1), website: null }],
    ['a telephone that is missing', companyCollection, 'Company', without(company(1), 'phone')],
  ];
  for (const [what, collection, schema, value] of cases) {
    it(`accepts and rejects ${what} as the validator does`, () => {
      const { valid, reported } = judged(collection, schema, value);
      if (valid) reported();
      else expect(reported).to.throw();
    });
  }

  it('has no members that are not served', () => {
    expect(judged(productCollection, 'Product', { ...product(1), colour: 'red' }).reported).to.throw(
      'additional',
    );
  });
});

describe('the OpenAPI document compared with the routes', () => {
  const redis = useRedis();
  const api = useApi(redis);

  it('shows errors exactly as the service sends them, except for version numbers', async () => {
    const unpublished = await api().get('/products');
    await importRecords([product(1)], productCollection, { redisUrl: redis().url });
    const limited = await api().makeKey({ rate: '10/s' });
    const narrow = await api().makeKey({ collections: ['products', 'drugs'] });
    const bearer = ({ key }: { key: string }) => ({ headers: { authorization: `Bearer ${key}` } });
    for (let n = 0; n < 10; n += 1) await api().get('/products/1', bearer(limited));
    const responses: Record<string, ApiAnswer> = {
      BadRequest: await api().get('/products?page=0'),
      Unauthorized: await api().get('/products', { headers: { authorization: 'Bearer x' } }),
      Forbidden: await api().get('/companies', bearer(narrow)),
      NotFound: await api().get('/products/7'),
      Gone: await api().get('/products?version=20261101030000'),
      TooManyRequests: await api().get('/products/1', bearer(limited)),
      ServiceUnavailable: unpublished,
      OtherError: await api().get('/products', { method: 'POST' }),
    };
    const plain = (text: string) => text.replace(/\b\d{14}\b(, \d{14})*/g, 'N');
    for (const [name, { text }] of Object.entries(responses)) {
      const { example } = openApi.components.responses[name]?.content?.['application/json'] ?? {};
      expect(plain(text), name).to.equal(plain(JSON.stringify(example)));
    }
  });

  it('has exactly the parameters of each route', async () => {
    const inQuery = Object.entries(openApi.paths).map(([path, { get }]) => ({
      path: path.replace('{id}', '7'),
      names: parametersOf(get).flatMap((it) => (it.in === 'query' ? [it.name] : [])),
    }));
    for (const { path, names } of inQuery.filter((it) => it.names.length > 0)) {
      const { status, text } = await api().get(`${path}?colour=red`);
      expect(status, path).to.equal(400);
      const taken = /accepts (.*)\./.exec(text)?.[1]?.split(/, | and /);
      expect(names, path).to.have.members(taken ?? []);
    }
    expect(inQuery.filter((it) => it.names.length > 0)).to.have.length(12);
  });
});
