import type { IncomingMessage } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import { gzipSync } from 'node:zlib';
import { expect } from 'chai';
import {
  type Change,
  createClient,
  digestOf,
  type MedrefClient,
  MedrefError,
  type Product,
  SetDigest,
} from '../../client/client.ts';
import { Connection, growing, usualTiming } from '../../client/connection.ts';
import { companies as companyCollection } from '../../shared/collections/companies.ts';
import { products as productCollection } from '../../shared/collections/products.ts';
import { connectForWriting } from '../../shared/redis/connections.ts';
import { collectionKeys } from '../../shared/store/keys.ts';
import { documentOf, parseVersion } from '../../shared/store/versions.ts';
import { startApi, type TestApi } from '../support/api.ts';
import { quickTiming } from '../support/client-timing.ts';
import { importRecords } from '../support/importing.ts';
import { read } from '../support/project-files.ts';
import { relaying, type Spoil, startFaultyProxy } from '../support/proxies.ts';
import { companies, product, products } from '../support/records.ts';
import { useRedis } from '../support/redis-server.ts';
import { closedPort, upstreamServers } from '../support/upstream-server.ts';

const count = 250;
const first = products(count);
/** The next version: 201 records have changed, which is more than a page of changes; one is removed, and one is new. */
const second = [
  ...first.slice(1).map((it, n) => (n < 201 ? { ...it, published: false } : it)),
  product(9_000, { drug: { id: 1, name: 'DRUG 1' } }),
];

async function listed<Item>(items: AsyncIterable<Item>): Promise<Item[]> {
  const list: Item[] = [];
  for await (const item of items) list.push(item);
  return list;
}

/** Returns the error that a promise is rejected with. */
async function errorOf(promise: Promise<unknown>): Promise<MedrefError> {
  const error = await promise.then(
    () => undefined,
    (thrown: unknown) => thrown,
  );
  expect(error).to.be.instanceOf(MedrefError);
  return error as MedrefError;
}

/** A collection as JavaScript calls it. */
interface Loose {
  get(id: unknown, options?: object): Promise<unknown>;
  search(options?: object): unknown;
  page(options?: object): Promise<unknown>;
  all(options?: object): unknown;
  versions(options?: object): Promise<unknown>;
  changes(options?: object): unknown;
  mirror(options?: object): unknown;
  report(options?: object): Promise<unknown>;
}

describe('the client library', function () {
  this.timeout(30_000);
  const redis = useRedis();
  const startServer = upstreamServers();
  let api: TestApi;
  let client: MedrefClient;
  let versions: [number, number];

  before(async () => {
    const options = { redisUrl: redis().url, force: true };
    await importRecords(companies(3), companyCollection, options);
    const older = await importRecords(first, productCollection, options);
    const newer = await importRecords(second, productCollection, options);
    versions = [older.version as number, newer.version as number];
    api = await startApi({ redisUrl: redis().url });
    client = createClient({ baseUrl: api.origin, key: api.key }, quickTiming);
  });
  after(() => api.stop());

  const clientOf = (origin: string, tries = quickTiming.tries) =>
    createClient({ baseUrl: origin, key: api.key }, { ...quickTiming, tries });

  /** Returns a client behind a server that damages responses, with the requests that this server received. */
  async function spoilt(spoil: Spoil): Promise<MedrefClient & { requests: readonly IncomingMessage[] }> {
    const { origin, requests } = await startServer(relaying(() => api.port, spoil));
    return { ...clientOf(origin), requests };
  }

  describe('sends', () => {
    it('its name and release as User-Agent', async () => {
      const { version } = JSON.parse(read('client/package.json'));
      const { origin, requests } = await startServer(relaying(() => api.port));
      await clientOf(origin).products.get(2);
      expect(requests[0]?.headers['user-agent']).to.equal(`medref-client/${version}`);
    });

    it('the current key, which a function returns for each request', async () => {
      const keys = ['old', api.key];
      const { products } = createClient(
        { baseUrl: api.origin, key: async () => keys.shift() as string },
        quickTiming,
      );
      expect(await errorOf(products.get(2))).to.include({ status: 401 });
      expect((await products.get(2))?.product.id).to.equal(2);
      expect(await products.get(2).catch((error: unknown) => error)).to.be.instanceOf(TypeError);
    });

    it('as many retries, and waits as long, as the options say', async () => {
      const { origin, requests } = await startServer((response) => void response.writeHead(503).end('{}'));
      await errorOf(createClient({ baseUrl: origin, key: 'key', retries: 1 }, quickTiming).products.get(2));
      expect(requests).to.have.length(2);
      const silent = await startServer(() => undefined);
      const options = { baseUrl: silent.origin, key: 'key', timeout: 30, retries: 0 };
      const error = await errorOf(createClient(options).products.get(2));
      expect(error).to.include({ name: 'MedrefError', reason: 'ConnectionError' });
      expect(error.message).to.include('no data for 0.03 s');
    });
  });

  describe('reports', () => {
    it('the id of the failed request, which the log of the service has', async () => {
      const error = await errorOf(createClient({ baseUrl: api.origin, key: 'wrong' }).products.get(2));
      expect(error).to.include({ name: 'MedrefError', status: 401, reason: 'Unauthorized' });
      expect(error.requestId).to.match(/^[!-~]{8,}$/);
    });

    it('a refused connection with the address, and what to check', async () => {
      const baseUrl = `http://127.0.0.1:${await closedPort()}`;
      const error = await errorOf(createClient({ baseUrl, key: 'key', retries: 0 }).products.get(2));
      expect(error.message).to.equal(
        `${baseUrl}/products/2 could not be requested: connect ECONNREFUSED ${baseUrl.slice(7)}. Check that the service runs at ${baseUrl}, and that this machine reaches it.`,
      );
      expect(error).to.include({ status: 0, reason: 'ConnectionError', requestId: null });
    });
  });

  describe('reads', () => {
    it('a record by its id, live or pinned', async () => {
      expect(await client.products.get(2)).to.deep.equal(second[0]);
      expect(await client.products.get(2, { version: versions[0] })).to.deep.equal(first[1]);
      expect(await client.companies.get(3)).to.deep.equal(companies(3)[2]);
      expect(await client.drugs.get(7)).to.deep.equal({ drug: first[6]?.drug });
    });

    it('null for an unknown id, and only for that', async () => {
      expect(await client.products.get(1)).to.equal(null);
      const elsewhere = clientOf(`${api.origin}/wrong`).products.get(2);
      expect((await errorOf(elsewhere)).status).to.equal(404);
    });

    it('pages with links and records', async () => {
      const page = await client.products.page({ page: 2, perPage: 100, version: versions[0] });
      expect(page.data).to.deep.equal(first.slice(100, 200));
      expect(page.meta).to.deep.equal({ totalCount: count, pageCount: 3, currentPage: 2, perPage: 100 });
      expect(page.links.next?.href).to.equal(
        `${api.origin}/products?version=${versions[0]}&page=3&per-page=100`,
      );
      expect(page.version).to.equal(versions[0]);
      expect((await client.products.page()).data).to.deep.equal(second.slice(0, 200));
    });

    it('records by their ids, in the given order', async () => {
      const { data } = await client.products.page({ ids: [9, 7, 9_000] });
      expect(data.map((it) => it.product.id)).to.deep.equal([9, 7, 9_000]);
    });

    it('all results of a search, over several pages', async () => {
      const search = client.products.search({ name: 'drug' });
      expect(search.version).to.equal(undefined);
      const found = await listed(search);
      expect(found).to.have.length(second.length);
      expect(new Set(found.map((it) => it.product.id)).size).to.equal(second.length);
      expect(search.version).to.equal(versions[1]);
      const { barcode } = (first[4] as Product).barcodes[0] as Product['barcodes'][0];
      expect(await listed(client.products.search({ barcode, version: versions[0] }))).to.deep.equal([
        first[4],
      ]);
      expect(await listed(client.products.search({ drug: 1 }))).to.deep.equal([second.at(-1)]);
      expect(await listed(client.companies.search({ name: 'FIRM 2' }))).to.deep.equal([companies(3)[1]]);
    });

    it('a search in one version, whatever is published between its pages', async () => {
      const pinned = await spoilt(() => false);
      await listed(pinned.products.search({ name: 'drug' }));
      expect(pinned.requests.map(({ url }) => url)).to.deep.equal([
        '/products?name=drug&page=1&per-page=200',
        `/products?name=drug&version=${versions[1]}&page=2&per-page=200`,
      ]);
    });

    it('the whole list in order, with version and digest', async () => {
      const all = client.products.all();
      expect(await listed(all)).to.deep.equal(second);
      expect(all.version).to.equal(versions[1]);
      expect(all.digest).to.deep.equal(digestOf(second));
      expect(await listed(client.products.all({ version: versions[0] }))).to.deep.equal(first);
      expect(await listed(client.drugs.all())).to.deep.equal(second.map(({ drug }) => ({ drug })));
    });

    it('the kept versions with their digests', async () => {
      const kept = await client.products.versions();
      expect(kept.map(({ version, live, digest }) => ({ version, live, digest }))).to.deep.equal([
        { version: versions[1], live: true, digest: digestOf(second) },
        { version: versions[0], live: false, digest: digestOf(first) },
      ]);
    });

    it('the kept versions over several pages', async () => {
      const connection = await connectForWriting(redis().url);
      const { versionDocuments } = collectionKeys('medref', productCollection);
      const document = (await connection.hget(versionDocuments, String(versions[0]))) as string;
      const older = Array.from({ length: 250 }, (_, n) => versions[0] - 1 - n);
      const documents = older.map((version) => documentOf({ ...parseVersion('', document), version }));
      await connection.hset(versionDocuments, Object.fromEntries(older.map((it, n) => [it, documents[n]])));
      try {
        const kept = await client.products.versions();
        expect(kept.map(({ version }) => version)).to.deep.equal([versions[1], versions[0], ...older]);
      } finally {
        await connection.hdel(versionDocuments, ...older.map(String));
        connection.disconnect();
      }
    });

    it('changes, which turn the digest of a copy into the digest of the new version', async () => {
      const changes = client.products.changes({ since: versions[0] });
      const list: Change<Product>[] = await listed(changes);
      expect(list.map(({ change }) => change).filter((it) => it !== 'changed')).to.deep.equal([
        'removed',
        'added',
      ]);
      const copy = new Map(first.map((it) => [it.product.id, it]));
      const digest = new SetDigest();
      for (const record of first) digest.add(record);
      for (const { id, record } of list) {
        const before = copy.get(id);
        if (before) digest.remove(before);
        if (record) digest.add(record);
      }
      expect(changes.version).to.equal(versions[1]);
      expect(digest.value).to.equal(changes.digest?.set).and.to.equal(digestOf(second).set);
    });

    it('gzip, and requests it', async () => {
      const relayed = await spoilt(() => false);
      await listed(relayed.products.all());
      await relayed.products.get(2);
      expect(relayed.requests.map(({ headers }) => headers['accept-encoding'])).to.deep.equal([
        'gzip',
        'gzip',
      ]);
    });
  });

  describe('caches responses', () => {
    it('and revalidates them by ETag', async () => {
      const statuses: (string | undefined)[] = [];
      const relayed = await spoilt((_response, _answer, { headers }) => {
        statuses.push(headers['if-none-match']);
        return false;
      });
      const twice = async <Value>(read: () => Promise<Value>) => [await read(), await read()];
      for (const read of [
        () => relayed.products.get(2),
        () => relayed.products.page({ name: 'drug 1' }),
        () => relayed.products.page({ name: 'drug 2' }),
        () => relayed.products.versions(),
      ] as (() => Promise<unknown>)[]) {
        const [once, again] = await twice(read);
        expect(again).to.deep.equal(once);
        expect(again, 'a caller may change its copy').not.to.equal(once);
        expect(statuses.splice(0)).to.satisfy(([a, b]: string[]) => a === undefined && b?.startsWith('W/"'));
      }
    });

    it('for the last fifty requests only', async () => {
      const relayed = await spoilt(() => false);
      const tagged = async (id: number) => {
        await relayed.products.get(id);
        return relayed.requests.at(-1)?.headers['if-none-match'] !== undefined;
      };
      for (let id = 2; id < 53; id += 1) expect(await tagged(id), `${id}`).to.equal(false);
      expect(await tagged(3)).to.equal(true);
      expect(await tagged(2)).to.equal(false);
      expect(await tagged(3), 'requested recently').to.equal(true);
    });
  });

  describe('retries', () => {
    for (const status of [429, 502, 503, 504]) {
      it(`after ${status} with Retry-After`, async () => {
        const startedAt = Date.now();
        const relayed = await spoilt((response) => {
          if (relayed.requests.length > 2) return false;
          response.writeHead(status, { 'retry-after': '20' }).end('<html>');
          return true;
        });
        expect(await relayed.products.get(2)).to.deep.equal(second[0]);
        // Two waits of 20 shortened seconds.
        expect(Date.now() - startedAt).to.be.at.least(190);
        expect(relayed.requests).to.have.length(3);
      });
    }

    it("five times in total, then throws the service's error", async () => {
      const relayed = await spoilt((response) => {
        const data = { name: 'Service Unavailable', message: 'Redis is away.', code: 0, status: 503 };
        response.writeHead(503).end(JSON.stringify({ success: false, data }));
        return true;
      });
      const error = await errorOf(relayed.products.get(2));
      expect(error).to.include({ status: 503, reason: 'Service Unavailable', message: 'Redis is away.' });
      expect(error.retryAfter).to.equal(null);
      expect(relayed.requests).to.have.length(5);
    });

    it('unless Retry-After exceeds a minute', async () => {
      const relayed = await spoilt((response) => {
        response.writeHead(429, { 'retry-after': '61' }).end();
        return true;
      });
      expect(await errorOf(relayed.products.get(2))).to.include({ status: 429, retryAfter: 61 });
      expect(relayed.requests).to.have.length(1);
    });

    it('after a refused connection, then throws', async () => {
      const error = await errorOf(clientOf(`http://127.0.0.1:${await closedPort()}`).products.get(2));
      expect(error).to.include({ status: 0, reason: 'ConnectionError' });
      expect(error.message).to.match(/ECONNREFUSED/);
    });

    it('after silence, before and during the response', async () => {
      const silent = await startServer((response, _request, nth) => {
        if (nth > 1) response.writeHead(200, { 'medref-version': '1' }).write('{');
      });
      const timing = { ...quickTiming, silenceMs: 300, tries: 2 };
      const slow = createClient({ baseUrl: silent.origin, key: 'key' }, timing);
      const error = await errorOf(slow.products.get(2));
      expect(error.message).to.match(/could not be read completely: no data for 0.3 s\.$/);
      expect(silent.requests).to.have.length(2);
    });

    it('after no silence that it requested by wait', async () => {
      const patient = await startServer((response) => {
        const body = { data: [], _links: {}, _meta: { totalCount: 0 }, success: true };
        setTimeout(() => response.writeHead(200, { 'medref-version': '1' }).end(JSON.stringify(body)), 150);
      });
      const timing = { secondMs: 1_000, silenceMs: 50, tries: 1 };
      const { products: collection } = createClient({ baseUrl: patient.origin, key: 'key' }, timing);
      expect(await listed(collection.changes({ since: 1, wait: 10 }))).to.deep.equal([]);
    });

    it('after truncated JSON', async () => {
      const relayed = await spoilt((response, { headers, body }) => {
        if (relayed.requests.length > 2) return false;
        const { 'content-length': _, ...others } = headers;
        response.writeHead(200, others).end(body.subarray(0, 20));
        return true;
      });
      expect(await relayed.products.get(2)).to.deep.equal(second[0]);
      expect(relayed.requests).to.have.length(3);
    });
  });

  describe('waits before a retry', () => {
    it('longer each time, up to half a minute', () => {
      expect(growing(3)).to.be.within(0.5, 1);
      expect(growing(5)).to.be.within(2, 4);
      expect(growing(1_000)).to.be.within(15, 30);
    });

    it('for months if asked, which is longer than timers allow', async () => {
      const ending = new AbortController();
      const options = { baseUrl: 'https://medref.example', key: 'key', signal: ending.signal };
      const pause = new Connection(options, usualTiming).pause(2 ** 31, {});
      const isOver = pause.then(() => true);
      expect(await Promise.race([isOver, sleep(20, false)])).to.equal(false);
      ending.abort();
      await pause;
    });
  });

  describe('resumes the whole list', () => {
    for (const encoding of ['gzip', 'identity'] as const) {
      it(`after a cut at any place, with ${encoding}, without repeated records`, async () => {
        const asked: typeof fetch = (url, init) =>
          fetch(url, { ...init, headers: { ...(init?.headers as object), 'accept-encoding': encoding } });
        const text = second.map((it) => `${JSON.stringify(it)}\n`).join('');
        const { length } = encoding === 'gzip' ? gzipSync(text) : text;
        const within = [0.1, 0.3, 0.5, 0.7, 0.9].map((part) => 600 + Math.floor((part * length) / 2) * 2);
        const cuts = [0, 11, 400, ...within];
        const proxy = await startFaultyProxy(
          () => api.port,
          () => {
            const after = cuts.shift();
            return after === undefined ? { kind: 'none' } : { kind: 'cut', after, isReset: after % 4 === 0 };
          },
        );
        try {
          const options = { baseUrl: proxy.origin, key: api.key, fetch: asked };
          const { products } = createClient(options, { ...quickTiming, tries: cuts.length + 1 });
          expect(await listed(products.all())).to.deep.equal(second);
          expect(cuts).to.deep.equal([]);
        } finally {
          await proxy.close();
        }
      });
    }

    it('after a regular end inside a line, as a proxy may turn a cut into', async () => {
      const relayed = await spoilt((response, { headers }) => {
        if (relayed.requests.length > 1) return false;
        const text = second.map((it) => `${JSON.stringify(it)}\n`).join('');
        response.writeHead(200, headers).end(gzipSync(text.slice(0, -5)));
        return true;
      });
      expect(await listed(relayed.products.all())).to.deep.equal(second);
    });

    it('after any number of cuts, as long as each attempt makes progress', async () => {
      const { origin, requests } = await startServer(
        relaying(
          () => api.port,
          (response, { headers }) => {
            const text = second.map((it) => `${JSON.stringify(it)}\n`).join('');
            if (requests.length > 5) return false;
            const came = gzipSync(text.slice(0, (requests.length * text.length) / 6));
            response.writeHead(200, headers).end(came);
            return true;
          },
        ),
      );
      expect(await listed(clientOf(origin, 2).products.all())).to.deep.equal(second);
      expect(requests).to.have.length(6);
    });

    it('in its first version', async () => {
      const relayed = await spoilt((response, { headers, body }) => {
        if (relayed.requests.length > 1) return false;
        response.writeHead(200, headers);
        response.write(body.subarray(0, -50), () => response.socket?.destroy());
        return true;
      });
      await listed(relayed.products.all());
      expect(relayed.requests.map(({ url }) => url)).to.deep.equal([
        '/products',
        `/products?version=${versions[1]}`,
      ]);
    });

    it('or throws 410 if that version has expired', async () => {
      const relayed = await spoilt((response, { headers, body }, { url }) => {
        if (url === '/products') {
          response.writeHead(200, headers);
          response.write(body.subarray(0, -50), () => response.socket?.destroy());
        } else {
          const data = { name: 'Gone', message: 'It is not kept.', code: 0, status: 410 };
          response.writeHead(410).end(JSON.stringify({ success: false, data }));
        }
        return true;
      });
      expect(await errorOf(listed(relayed.products.all()))).to.include({ status: 410, reason: 'Gone' });
    });
  });

  describe('withholds the last record', () => {
    const ndjson = (headers: Record<string, unknown>) => headers['content-type'] === 'application/x-ndjson';
    const linesOf = (records: readonly unknown[]) => records.map((it) => `${JSON.stringify(it)}\n`).join('');
    for (const [what, others] of [
      ['it ends too early', second.slice(0, -1)],
      ['it has another record', [product(77_000), ...second.slice(1)]],
      ['it has another order', [second[1], second[0], ...second.slice(2)]],
      ['it has a record too many', [...second, product(77_000)]],
    ] as const) {
      it(`of a list that does not match its digest: ${what}`, async () => {
        const relayed = await spoilt((response, { headers }) => {
          if (!ndjson(headers)) return false;
          response.writeHead(200, headers).end(gzipSync(linesOf(others)));
          return true;
        });
        const given: unknown[] = [];
        const reading = async () => {
          for await (const record of relayed.products.all()) given.push(record);
        };
        const error = await errorOf(reading());
        expect(error).to.include({ status: 200, reason: 'DigestMismatch' });
        expect(error.message).to.equal(
          `The products received are not version ${versions[1]}: their digest differs.`,
        );
        expect(given).to.have.length(others.length - 1);
        expect(relayed.requests).to.have.length(1);
      });
    }

    it('of lines that are no records', async () => {
      const relayed = await spoilt((response, { headers }) => {
        response.writeHead(200, headers).end(gzipSync('{"product":\n{}\n'));
        return true;
      });
      expect(await errorOf(listed(relayed.products.all()))).to.include({ reason: 'DigestMismatch' });
    });
  });

  describe('throws a TypeError without a request', () => {
    // Calls as from JavaScript, which checks no types.
    const loose = (made: MedrefClient) => made.products as unknown as Loose;
    const searches: [what: string, search: object | undefined, message: RegExp][] = [
      [
        'without a criterion',
        {},
        /^search needs one of name, words, barcode, drug, published; all\(\) reads the whole list\.$/,
      ],
      ['without options', undefined, /^search needs one of /],
      ['by a version alone', { version: 20261122030000 }, /^search needs one of /],
      ['by a barcode that is undefined', { barcode: undefined }, /^barcode is undefined\. /],
      ['by a barcode that is null, as gtinOf returns it', { barcode: null }, /^barcode is null\. /],
      ['by a name that is undefined, and a drug', { name: undefined, drug: 1 }, /^name is undefined\. /],
      ['by a drug that is undefined', { drug: undefined }, /^drug is undefined\. /],
      ['by a misspelt criterion', { barCode: undefined }, /^Unknown option "barCode"\. Options: name, /],
      ['by pages', { page: 2 }, /^Unknown option "page". /],
    ];
    for (const [what, search, message] of searches)
      it(`for a search ${what}`, async () => {
        const relayed = await spoilt(() => false);
        expect(() => loose(relayed).search(search)).to.throw(TypeError, message);
        expect(relayed.requests).to.deep.equal([]);
      });

    for (const [what, page, message] of [
      [
        'a barcode that is undefined',
        { barcode: undefined },
        /^barcode is undefined\. Without a value, every record would match\.$/,
      ],
      ['a name that is null', { name: null }, /^name is null\. /],
      ['ids that are undefined', { ids: undefined }, /^ids is undefined\. /],
      ['a misspelt criterion', { barCode: undefined, page: 1 }, /^Unknown option "barCode". /],
    ] as const)
      it(`for a page with ${what}`, async () => {
        const relayed = await spoilt(() => false);
        const error = await loose(relayed)
          .page(page)
          .catch((it) => it);
        expect(error).to.be.instanceOf(TypeError);
        expect((error as Error).message).to.match(message);
        expect(relayed.requests).to.deep.equal([]);
      });

    for (const [what, call] of [
      ['get', (it) => it.get(1, { verison: 5 })],
      ['page', (it) => it.page({ 'per-page': 1 })],
      ['all', (it) => it.all({ name: 'x' })],
      ['versions', (it) => it.versions({ page: 1 })],
      ['changes', (it) => it.changes({ since: 1, perPage: 1 })],
      ['mirror', (it) => it.mirror({ sinse: 5 })],
      ['report', (it) => it.report({ version: 1, set: 'x' })],
    ] as const satisfies readonly (readonly [string, (it: Loose) => unknown])[])
      it(`for an unknown option of ${what}, whose options it names`, async () => {
        const relayed = await spoilt(() => false);
        const error = await (async () => call(loose(relayed)))().catch((it) => it);
        expect(error).to.be.instanceOf(TypeError);
        expect((error as Error).message).to.match(/^Unknown option "\S+"\. Options: \w+/);
        if (what === 'page') expect((error as Error).message).to.include('perPage');
        expect(relayed.requests).to.deep.equal([]);
      });

    it('for an unknown option of the client, and an address that is no URL', () => {
      const made = createClient as unknown as (options: object) => unknown;
      const [baseUrl, key] = ['https://medref.example', 'key'];
      expect(() => made({ baseUrl, key, timeOut: 1 })).to.throw(TypeError, /^Unknown option "timeOut"\. /);
      for (const address of ['127.0.0.1:7870', 'medref.example', 'localhost:7870'])
        expect(() => made({ baseUrl: address, key })).to.throw(
          TypeError,
          /^baseUrl must be an http or https URL /,
        );
    });

    it('for an id that is no number, and changes since nothing', async () => {
      const relayed = await spoilt(() => false);
      const products = loose(relayed);
      for (const id of ['versions', undefined, -1, 1.5]) {
        const error = (await products.get(id).catch((it) => it)) as Error;
        expect([error.name, error.message]).to.deep.equal([
          'TypeError',
          `id must be a whole number, not ${id}.`,
        ]);
      }
      for (const options of [undefined, {}, { since: undefined }, { since: null }])
        expect(() => products.changes(options)).to.throw(
          TypeError,
          /^since is (undefined|null): the version /,
        );
      expect(relayed.requests).to.deep.equal([]);
    });

    it('for a missing address or key, by name', () => {
      const made = createClient as unknown as (options?: object) => unknown;
      const [baseUrl, key] = ['https://medref.example', 'key'];
      for (const options of [undefined, {}, { key }, { baseUrl: undefined, key }, { baseUrl: '', key }])
        expect(() => made(options)).to.throw(TypeError, /^baseUrl is missing:/);
      for (const options of [
        { baseUrl },
        { baseUrl, key: undefined },
        { baseUrl, key: null },
        { baseUrl, key: '' },
      ])
        expect(() => made(options)).to.throw(TypeError, /^key is missing:/);
    });

    it('but not for a page number or version that is undefined', async () => {
      const options = { page: undefined, perPage: undefined, version: undefined, signal: undefined };
      expect((await client.products.page(options)).data).to.have.length(200);
    });
  });

  describe('gives up at once', () => {
    it('on a refused key', async () => {
      const { origin, requests } = await startServer(relaying(() => api.port));
      const { products } = createClient({ baseUrl: origin, key: 'wrong' }, quickTiming);
      for (const refused of [products.get(2), listed(products.all()), listed(products.mirror())]) {
        const error = await errorOf(refused);
        expect(error).to.include({ status: 401, reason: 'Unauthorized' });
        expect(error.message).to.match(/^A valid key is required/);
      }
      expect(requests).to.have.length(3);
    });

    it('on an invalid request', async () => {
      const relayed = await spoilt(() => false);
      const error = await errorOf(relayed.products.page({ name: '' }));
      expect(error.status).to.equal(400);
      expect(error.message).to.include('name');
      expect((await errorOf(listed(relayed.products.changes({ since: 5 })))).status).to.equal(410);
      expect(relayed.requests).to.have.length(2);
    });

    for (const [what, status, headers, body] of [
      ['a page of HTML', 200, { 'content-type': 'text/html' }, '<html>'],
      ['JSON of something else', 200, {}, '{"success":true,"data":{}}'],
      ['JSON of something else, with a number', 200, { 'medref-version': '1' }, '{"data":{}}'],
      ['a number that is none', 200, { 'medref-version': 'one' }, '{"success":true,"data":{}}'],
      ['an error of something else', 404, {}, '{"error":"no such page"}'],
      ['an error of something else, with data', 404, {}, '{"data":{"name":"a","message":"b"}}'],
      ['a page of HTML as an error', 500, {}, '<html>'],
    ] as const) {
      it(`if ${what} shows that this is not medref`, async () => {
        const server = await startServer((response) => void response.writeHead(status, headers).end(body));
        const error = await errorOf(clientOf(server.origin).products.get(2));
        expect(error).to.include({ reason: 'NotMedref', status });
        expect(error.message).to.include(`Not a response of medref: ${server.origin}/products/2 `);
        expect(server.requests).to.have.length(1);
      });
    }

    it('on a list without a digest, or with an endless line', async () => {
      const fields = { 'medref-version': '1' };
      const bare = await startServer((response) => void response.writeHead(200, fields).end('{}\n'));
      expect(await errorOf(listed(clientOf(bare.origin).products.all()))).to.include({ reason: 'NotMedref' });
      const endless = await startServer((response) => {
        response.writeHead(200, { ...fields, 'medref-digest': 'list=:YQ==:' }).end('x'.repeat(2 ** 21));
      });
      expect(await errorOf(listed(clientOf(endless.origin).products.all()))).to.include({
        reason: 'NotMedref',
      });
    });

    it('if a list has fewer or more items than announced', async () => {
      const relayed = await spoilt((response, { headers, body }) => {
        const { 'content-length': _, 'content-encoding': __, ...others } = headers;
        const list = body.toString().replace('"totalCount":1', '"totalCount":2');
        response.writeHead(200, others).end(list);
        return true;
      });
      const search = relayed.companies.search({ name: 'FIRM 2' });
      expect(await errorOf(listed(search))).to.include({ reason: 'NotMedref' });
    });
  });

  describe('aborts', () => {
    it('by a signal of the client or a call, and throws its reason', async () => {
      const reason = new Error('enough');
      let ending = new AbortController();
      const server = await startServer(() => ending.abort(reason));
      for (const which of ['client', 'call'] as const) {
        ending = new AbortController();
        const { signal } = ending;
        const options = { baseUrl: server.origin, key: 'key' };
        const { products } = createClient({ ...options, ...(which === 'client' && { signal }) }, quickTiming);
        const reading = products.get(2, which === 'call' ? { signal } : {});
        expect(await reading.catch((error: unknown) => error)).to.equal(reason);
        expect(await products.get(2, { signal }).catch((error: unknown) => error)).to.equal(reason);
      }
      expect(server.requests).to.have.length(2);
    });

    it('a list at once, even if records have already been received', async () => {
      const ending = new AbortController();
      const reason = new Error('enough');
      const read: number[] = [];
      const reading = async () => {
        for await (const { product } of client.products.all({ signal: ending.signal })) {
          read.push(product.id);
          if (read.length === 2) ending.abort(reason);
        }
      };
      expect(await reading().catch((error: unknown) => error)).to.equal(reason);
      expect(read).to.have.length(2);
    });

    it('by a signal during the wait for a retry', async () => {
      const ending = new AbortController();
      const slow = { ...quickTiming, secondMs: 1_000 };
      const startedAt = Date.now();
      const { origin } = await startServer((response) => {
        response.writeHead(503, { 'retry-after': '60' }).end();
        setTimeout(() => ending.abort(), 20);
      });
      const { products } = createClient({ baseUrl: origin, key: 'key' }, slow);
      const error = await products.get(2, { signal: ending.signal }).catch((thrown: Error) => thrown);
      expect((error as Error).name).to.equal('AbortError');
      expect(Date.now() - startedAt).to.be.below(5_000);
    });

    it('the transfer of a list that is no longer read', async () => {
      const { origin, openConnections } = await startServer((response) => {
        const lines = `${JSON.stringify(product(1))}\n`.repeat(3);
        response.writeHead(200, { 'medref-version': '1', 'medref-digest': 'list=:YQ==:' }).write(lines);
      });
      for await (const _ of clientOf(origin).products.all()) break;
      while ((await openConnections()) > 0) await sleep(2);
    });

    it('the transfer of a response that is not from medref', async () => {
      const { origin, openConnections } = await startServer((response) => void response.write('<html>'));
      expect(await errorOf(clientOf(origin).products.get(2))).to.include({ reason: 'NotMedref' });
      while ((await openConnections()) > 0) await sleep(2);
    });

    it('only requests in progress; finished ones remove their listeners', async () => {
      const ending = new AbortController();
      const reason = new Error('enough');
      let asked = 0;
      Object.defineProperty(ending.signal, 'reason', {
        get() {
          asked += 1;
          return reason;
        },
      });
      const relay = relaying(() => api.port);
      const { origin } = await startServer((response, request, nth) => {
        if (nth > 3) ending.abort();
        else relay(response, request, nth);
      });
      const options = { baseUrl: origin, key: api.key, signal: ending.signal };
      const { products } = createClient(options, quickTiming);
      for (const id of [2, 3, 4]) expect((await products.get(id))?.product.id).to.equal(id);
      expect(await products.get(5).catch((error: unknown) => error)).to.equal(reason);
      expect(asked).to.equal(1);
    });
  });

  describe('rejects', () => {
    for (const [what, options] of [
      ['of an address that is none', { baseUrl: 'medref.example', key: 'key' }],
      ['of an address of another kind', { baseUrl: 'ftp://medref.example', key: 'key' }],
      ['of an address with a password', { baseUrl: 'https://a:b@medref.example', key: 'key' }],
      ['of an address with a query', { baseUrl: 'https://medref.example?a=b', key: 'key' }],
      ['without a key', { baseUrl: 'https://medref.example', key: '' }],
      ['with a key that has a line end', { baseUrl: 'https://medref.example', key: 'secret\n' }],
    ] as const) {
      it(`${what}, without the key in the error`, () => {
        expect(() => createClient(options))
          .to.throw(TypeError)
          .with.property('message')
          .that.not.includes('secret');
      });
    }

    it('a result that was already read', async () => {
      for (const result of [
        client.products.all(),
        client.products.search({ name: 'a' }),
        client.drugs.all(),
      ]) {
        await listed(result as AsyncIterable<unknown>);
        const error = await listed(result as AsyncIterable<unknown>).catch((thrown: unknown) => thrown);
        expect(error)
          .to.be.instanceOf(TypeError)
          .with.property('message', 'A result can be read once. Call the method again to read it again.');
      }
    });

    it('a timeout or a number of retries that is none', () => {
      const options = { baseUrl: 'https://medref.example', key: 'key' };
      expect(() => createClient({ ...options, timeout: 0 })).to.throw(
        TypeError,
        'timeout must be a number from 1.',
      );
      expect(() => createClient({ ...options, retries: -1 })).to.throw(
        TypeError,
        'retries must be a number from 0.',
      );
    });

    it('no base path: routes are below it', async () => {
      const { origin, requests } = await startServer((response) => void response.writeHead(404).end());
      await errorOf(clientOf(`${origin}/medref//`).products.get(2));
      expect(requests[0]?.url).to.equal('/medref/products/2');
    });
  });
});
