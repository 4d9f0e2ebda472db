import { setTimeout as sleep } from 'node:timers/promises';
import { expect } from 'chai';
import {
  type Arbitrary,
  array,
  assert,
  asyncProperty,
  constantFrom,
  integer,
  oneof,
  option,
  record,
  string,
  stringMatching,
  uniqueArray,
} from 'fast-check';
import { companies as companyCollection } from '../../../shared/collections/companies.ts';
import type { Collection } from '../../../shared/collections/define.ts';
import { products as productCollection } from '../../../shared/collections/products.ts';
import { useApi } from '../../support/api.ts';
import { importRecords } from '../../support/importing.ts';
import { openApi, type Parameter, parametersOf, type Schema } from '../../support/openapi.ts';
import { companies, products } from '../../support/records.ts';
import { useRedis } from '../../support/redis-server.ts';
import { useService } from '../../support/service.ts';

// `get` checks each response against the document. These tests say which of the described responses it must be.

/** Returns values that a parameter's schema allows. */
function rightValues({
  type,
  minimum,
  maximum,
  pattern,
  items,
  maxItems,
  maxLength,
  oneOf,
}: Schema): Arbitrary<string> {
  if (oneOf)
    return oneof(rightValues((oneOf as Schema[])[0] as Schema), constantFrom('2999-01-01T00:00:00Z'));
  if (type === 'array') {
    const bounds = { minLength: 1, maxLength: maxItems as number };
    return uniqueArray(rightValues(items as Schema), { ...bounds, selector: Number }).map(String);
  }
  if (type === 'integer') {
    const [least, most] = [minimum as number, (maximum as number | undefined) ?? 2 ** 53 - 1];
    return oneof(integer({ min: least, max: 12 }), integer({ min: least, max: most })).map(String);
  }
  if (type === 'boolean') return constantFrom('true', 'false');
  if (typeof pattern === 'string') return stringMatching(new RegExp(pattern));
  // Names and words have more rules than their schemas can express.
  if (maxLength === undefined) return stringMatching(/^[A-Za-zÇĞİÖŞÜçğıöşü]{2,9}( [a-z0-9]{2,9}){0,7}$/);
  return stringMatching(/^[A-Za-zÇĞİÖŞÜçğıöşü0-9%,]{1,40}$/);
}

function beyond(maximum: unknown): string[] {
  return typeof maximum === 'number' ? [String(BigInt(maximum) + 1n)] : [];
}

/** Returns values that a parameter's schema does not allow. */
function wrongValues({ type, maximum, pattern, maxLength, maxItems, oneOf }: Schema): Arbitrary<string> {
  if (oneOf) return wrongValues((oneOf as Schema[])[0] as Schema);
  if (type === 'array') {
    const many = Array.from({ length: (maxItems as number) + 1 }, (_, n) => n + 1).join();
    return oneof(
      constantFrom('', '0', '1,0', '1,1', '1,01', ',1', '1,', '1,,2', '1 2', '1, 2', String(2 ** 53), many),
      string({ minLength: 1 }).filter((it) => !/^[0-9,]+$/.test(it)),
    );
  }
  if (type === 'integer')
    return oneof(
      constantFrom('', '0', '-1', '1.5', '1e3', ' 1', '0x1', '１', ...beyond(maximum)),
      string({ minLength: 1 }).filter((it) => !/^[0-9]+$/.test(it)),
    );
  if (type === 'boolean') return constantFrom('', '1', 'True', 'yes');
  if (typeof pattern === 'string') return string().filter((it) => !new RegExp(pattern).test(it));
  return constantFrom(
    '',
    ' ',
    '\u0000',
    'a\u0007',
    maxLength === undefined ? 'a' : 'a'.repeat(Number(maxLength) + 1),
  );
}

const isIn = (place: Parameter['in']) => (it: Parameter) => it.in === place;

type Query = Readonly<Record<string, string | undefined>>;

/** Removes ids from a search, and words from a search by name: no schema can express that a request may not have both. */
function withoutConflicts(query: Query): Query {
  const isSearch = ['name', 'words', 'barcode', 'drug', 'published'].some(
    (name) => query[name] !== undefined,
  );
  const words = query['name'] === undefined ? query['words'] : undefined;
  return { ...query, words, ...(isSearch && { ids: undefined }) };
}

/** Removes a wait that only its time limit would end: a request for the changes since the live version. */
function withoutLongWait(query: Query, live: number | undefined): Query {
  const isLong =
    query['version'] === undefined && [String(live), '2999-01-01T00:00:00Z'].includes(query['since'] ?? '');
  return isLong ? { ...query, wait: undefined } : query;
}

/** Returns the path and query of a request. */
function targetOf(path: string, id: string, values: Query): string {
  const query = Object.entries(values).filter((it): it is [string, string] => it[1] !== undefined);
  const encoded = query.map((entry) => entry.map(encodeURIComponent).join('=')).join('&');
  return `${path.replace('{id}', encodeURIComponent(id))}${encoded && '?'}${encoded}`;
}

describe('requests generated from the OpenAPI document', function () {
  this.timeout(120_000);
  const redis = useRedis();
  const api = useApi(redis);
  /** The kept versions, by the first step of a path. */
  const kept: Record<string, number[]> = {};
  const runs = { numRuns: 20 };
  before(async () => {
    const redisUrl = redis().url;
    const publish = async (records: readonly unknown[], collection: Collection) =>
      (await importRecords(records, collection, { redisUrl, force: true })).version as number;
    kept['companies'] = [await publish(companies(12), companyCollection)];
    kept['products'] = [
      await publish(products(12), productCollection),
      await publish(products(14), productCollection),
    ];
    kept['drugs'] = kept['products'];
    while ((await api().get('/products/14')).status !== 200) await sleep(20);
    while ((await api().get('/companies')).status !== 200) await sleep(20);
  });

  const get = async (target: string, init?: RequestInit) => (await api().get(target, init)).status;

  const keptOf = (path: string) => kept[path.split('/')[1] as string] ?? [];
  // The existing version numbers are known when the tests run, but not when they are defined.
  const numberOf = (path: string) =>
    integer({ min: 0, max: 1 }).map((n) => String(keptOf(path).at(-1 - n) ?? keptOf(path)[0]));

  for (const [path, { get: operation }] of Object.entries(openApi.paths)) {
    const parameters = parametersOf(operation);
    const queries = parameters.filter(isIn('query'));
    if (queries.length === 0) continue;
    const idOf = parameters.find(isIn('path'));
    const ids = idOf ? rightValues(idOf.schema) : constantFrom('');
    const rightQuery = () =>
      record(
        Object.fromEntries(
          queries.map(({ name, required, schema }) => {
            const known = name === 'version' || name === 'since' ? [numberOf(path)] : [];
            const values = oneof(...known, rightValues(schema));
            return [name, required ? values : option(values, { nil: undefined })];
          }),
        ),
      ).map((query) => withoutLongWait(withoutConflicts(query), keptOf(path).at(-1)));

    it(`succeed if valid: ${path}`, async () => {
      const methods = constantFrom('GET', 'HEAD');
      const accepts = constantFrom('*/*', 'application/json');
      const held = constantFrom('*', '"x"', 'W/"x", "y"');
      const property = asyncProperty(
        ...[rightQuery(), ids, methods, accepts, option(held, { nil: undefined })],
        async (query, id, method, accept, tags) => {
          const headers = { accept, ...(tags !== undefined && { 'if-none-match': tags }) };
          const status = await get(targetOf(path, id, query), { method, headers });
          const endsBefore =
            query['since'] !== undefined &&
            query['version'] !== undefined &&
            !(Number(query['since']) <= Number(query['version']));
          const allowed = [200, 304, 410, ...(idOf ? [404] : []), ...(endsBefore ? [400] : [])];
          expect(allowed, `${targetOf(path, id, query)} is ${status}`).to.include(status);
          const isPinnedElsewhere =
            query['version'] !== undefined && !keptOf(path).includes(Number(query['version']));
          if (isPinnedElsewhere && !endsBefore) expect(status).to.equal(410);
        },
      );
      await assert(property, runs);
    });

    it(`are refused if one parameter is invalid: ${path}`, async () => {
      for (const { name, schema } of queries) {
        const property = asyncProperty(rightQuery(), wrongValues(schema), ids, async (query, wrong, id) => {
          const target = targetOf(path, id, { ...query, [name]: wrong });
          expect(await get(target), target).to.equal(400);
        });
        await assert(property, { numRuns: 10 });
      }
    });

    it(`are refused if a parameter is unknown, repeated or missing: ${path}`, async () => {
      const names = queries.map(({ name }) => name);
      const strange = string({ minLength: 1 }).filter((it) => !names.includes(it));
      const isIncomplete = queries.filter(({ required }) => required).length > 0;
      if (isIncomplete) expect(await get(path)).to.equal(400);
      const property = asyncProperty(
        rightQuery(),
        strange,
        ids,
        array(string()),
        async (query, name, id, [value]) => {
          expect(await get(targetOf(path, id, { ...query, [name]: value ?? '1' }))).to.equal(400);
          const twice = names.find((it) => query[it] !== undefined);
          if (twice === undefined) return;
          const target = targetOf(path, id, query);
          expect(await get(`${target}&${twice}=${encodeURIComponent(query[twice] as string)}`)).to.equal(400);
        },
      );
      await assert(property, { numRuns: 10 });
    });

    if (idOf)
      it(`are refused if the id is invalid: ${path}`, async () => {
        const wrong = wrongValues(idOf.schema).filter((it) => !/^\.{0,2}$|^(changes|versions)$/.test(it));
        const property = asyncProperty(wrong, async (id) => {
          expect(await get(targetOf(path, id, {})), id).to.equal(400);
        });
        await assert(property, runs);
      });
  }

  it('get NDJSON on request, 401 without a key, and 405 for other methods', async () => {
    const lines = { headers: { accept: 'application/x-ndjson' } };
    for (const [path, { get: operation }] of Object.entries(openApi.paths)) {
      const target = path.replace('{id}', '7');
      if (operation['x-ndjson']) expect(await get(target, lines), path).to.equal(200);
      const open = await get(target, { headers: { authorization: '' } });
      const isOpen = !('401' in operation.responses);
      expect(open === 401, path).to.equal(!isOpen);
      for (const method of ['POST', 'PUT', 'PATCH', 'DELETE'])
        expect(await get(target, { method }), path).to.equal(405);
    }
  });

  it('get 404 for other paths', async () => {
    const segments = array(stringMatching(/^[a-z0-9.~-]{1,12}$/), { minLength: 1, maxLength: 3 });
    const described = (path: string) =>
      Object.keys(openApi.paths).some((it) => path.startsWith(it.split('{')[0] as string));
    const property = asyncProperty(segments, async (parts) => {
      const path = new URL(`/${parts.join('/')}`, 'http://a').pathname;
      if (described(path) || path.startsWith('/docs') || path === '/') return;
      expect(await get(path), path).to.equal(404);
    });
    await assert(property, runs);
  });
});

describe('the health routes', () => {
  const service = useService();

  it('respond as the OpenAPI document says, before and after a publication', async () => {
    const statuses = async () =>
      await Promise.all(
        ['/health/live', '/health/ready', '/products'].map(
          async (it) => (await service.api().get(it)).status,
        ),
      );
    expect(await statuses()).to.deep.equal([200, 503, 503]);
    await service.publish(products(1));
    expect(await statuses()).to.deep.equal([200, 200, 200]);
  });
});
