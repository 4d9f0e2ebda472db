// Tests reads pinned with ?version=N while other versions are published, rolled back to and deleted.

import { expect } from 'chai';
import { companies as companyCollection } from '../../../shared/collections/companies.ts';
import { type Product, products as productCollection } from '../../../shared/collections/products.ts';
import { contentKeys } from '../../../shared/store/keys.ts';
import { aheadOfClock, importRecords } from '../../support/importing.ts';
import { companyKeys, productKeys as keys } from '../../support/keys.ts';
import { companies, product, products } from '../../support/records.ts';
import { useService } from '../../support/service.ts';
import { send, type WireAnswer } from '../../support/wire.ts';

interface List {
  readonly data: Product[];
  readonly _links: Readonly<Record<string, { readonly href: string }>>;
  readonly _meta: { readonly totalCount: number; readonly pageCount: number };
}

describe('pinned reads', () => {
  const { redis, redisUrl, api, importList, publish, goBackTo, restartApi } = useService();
  const get = (path: string, headers: Record<string, string> = {}) => send(api(), path, { headers });
  const parsed = <Shape>({ body }: WireAnswer) => JSON.parse(body.toString()) as Shape;
  const errorOf = (response: WireAnswer) =>
    parsed<{ success: boolean; data: { name: string; message: string; status: number } }>(response).data;

  async function getList(path: string): Promise<List> {
    const response = await get(path);
    expect(response.status, `${path}: ${response.body}`).to.equal(200);
    return parsed(response);
  }

  /** Follows the links to the last page, and calls `between` after each page. */
  async function walk(path: string, between: (page: number) => Promise<unknown> = async () => undefined) {
    const records: Product[] = [];
    const versions = new Set<string | undefined>();
    for (let next: string | undefined = path, page = 1; next !== undefined; page += 1) {
      const response = await get(next);
      expect(response.status, `${next}: ${response.body}`).to.equal(200);
      const { data, _links } = parsed<List>(response);
      records.push(...data);
      versions.add(response.headers['medref-version'] as string);
      next = _links['next']?.href.slice(api().origin.length);
      await between(page);
    }
    return { records, versions: [...versions] };
  }

  const one = [product(1), product(2), product(3)];
  const two = [product(3), product(2, { published: false }), product(4)];

  describe('the response', () => {
    it('is of the named version, for lists and records, whichever is live', async () => {
      const first = await publish(one);
      const second = await publish(two);
      const third = await goBackTo(first);
      const contents = new Map([
        [first, one],
        [second, two],
        [third, one],
      ]);
      for (const [version, content] of contents) {
        expect((await getList(`/products?version=${version}`)).data).to.deep.equal(content);
        for (const id of [1, 2, 3, 4]) {
          const record = content.find((it) => it.product.id === id);
          const response = await get(`/products/${id}?version=${version}`);
          expect(response.status, `record ${id} of version ${version}`).to.equal(record ? 200 : 404);
          if (record) {
            expect(parsed(response)).to.deep.equal({ data: record, success: true });
            expect(response.headers['medref-version']).to.equal(String(version));
          }
        }
      }
    });

    it('names the version and its publication date, on lists and records, GET and HEAD', async () => {
      const first = await publish(one);
      const lastModified = (await get('/products')).headers['last-modified'];
      const second = await publish(two);
      expect((await get('/products')).headers['last-modified']).not.to.equal(lastModified);
      for (const path of ['/products', '/products/2', '/products?page=9']) {
        const pinned = `${path}${path.includes('?') ? '&' : '?'}version=${first}`;
        for (const method of ['GET', 'HEAD']) {
          const { status, headers } = await send(api(), pinned, { method });
          expect(status).to.equal(200);
          expect(headers['medref-version'], pinned).to.equal(String(first));
          expect(headers['last-modified'], pinned).to.equal(lastModified);
        }
        expect((await get(path)).headers['medref-version']).to.equal(String(second));
      }
    });

    it('has its own second as its date, although three versions are published faster', async () => {
      const startedAt = Date.now();
      const first = await publish(one);
      const second = await publish(two);
      const third = await goBackTo(first);
      expect(Date.now() - startedAt, 'ms for three versions').to.be.below(2_000);
      for (const path of ['/products', '/products/2', '/drugs']) {
        const dates: number[] = [];
        for (const version of [first, second, third]) {
          const { headers } = await get(`${path}?version=${version}`);
          dates.push(Date.parse(headers['last-modified'] ?? ''));
        }
        const [earliest = 0, later = 0, latest = 0] = dates;
        expect(later - earliest, `${path}, ms between dates`).to.be.at.least(1_000);
        expect(latest - later, `${path}, ms between dates`).to.be.at.least(1_000);
      }
    });

    it('keeps every byte and header while others are published and rolled back', async () => {
      const first = await publish(products(205));
      const paths = [
        `/products?version=${first}`,
        `/products?version=${first}&page=2`,
        `/products?page=99&version=${first}`,
        `/products?version=${first}&per-page=7&page=3`,
        `/products/17?version=${first}`,
      ];
      const answersNow = () =>
        Promise.all(
          paths.map(async (path) => {
            const { status, body, headers } = await get(path);
            const { etag, 'last-modified': lastModified, 'medref-version': version } = headers;
            return { status, body: body.toString(), etag, lastModified, version };
          }),
        );
      const before = await answersNow();
      expect(before.map(({ status }) => status)).to.deep.equal(paths.map(() => 200));
      await publish(two, { keepVersions: 9 });
      expect(await answersNow()).to.deep.equal(before);
      await goBackTo(first);
      expect(await answersNow()).to.deep.equal(before);
      await publish(one, { keepVersions: 9 });
      expect(await answersNow()).to.deep.equal(before);
    });

    it('is the same for the live version, also after that is replaced', async () => {
      const first = await publish(one);
      const before = await get(`/products?version=${first}`);
      expect(parsed<List>(before).data).to.deep.equal(one);
      await publish(two);
      const after = await get(`/products?version=${first}`);
      expect(after.body.equals(before.body)).to.equal(true);
      expect(after.headers.etag).to.equal(before.headers.etag);
    });

    it("is of one collection's versions only", async () => {
      // Both collections get the same number, whatever the current second is.
      await redis().mset(keys.next, aheadOfClock, companyKeys.next, aheadOfClock);
      const version = await publish(one);
      const imported = await importRecords(companies(2), companyCollection, { redisUrl: redisUrl() });
      const second = await publish(two);
      expect(imported.version).to.equal(version);
      expect((await get(`/companies?version=${version}`)).status).to.equal(200);
      expect((await get(`/companies?version=${second}`)).status).to.equal(410);
    });

    it('is 404 for a record that only other versions have', async () => {
      const first = await publish(one);
      await publish(two);
      expect((await get('/products/4')).status).to.equal(200);
      expect((await get(`/products/4?version=${first}`)).status).to.equal(404);
      expect((await get('/products/1')).status).to.equal(404);
      expect((await get(`/products/1?version=${first}`)).status).to.equal(200);
    });
  });

  describe('links', () => {
    it('keep the version before page and per-page, whatever the order of the request', async () => {
      const version = await publish(products(5));
      await publish(two);
      for (const query of [
        `version=${version}&page=2&per-page=2`,
        `page=2&per-page=2&version=${version}`,
        `per-page=2&version=0${version}&page=2`,
      ]) {
        const { _links } = await getList(`/products?${query}`);
        const href = (page: number) => ({
          href: `${api().origin}/products?version=${version}&page=${page}&per-page=2`,
        });
        expect(_links).to.deep.equal({
          ...{ self: href(2), first: href(1), last: href(3), next: href(3), prev: href(1) },
        });
      }
    });

    it('have no version if the request has none', async () => {
      await publish(products(5));
      const { _links } = await getList('/products?per-page=2');
      for (const { href } of Object.values(_links)) expect(href).not.to.include('version');
    });

    it('lead back, too: prev and first have the same version', async () => {
      const version = await publish(products(5));
      await publish(two);
      const beyond = await getList(`/products?version=${version}&page=9&per-page=2`);
      const back = await getList(beyond._links['prev']?.href.slice(api().origin.length) ?? '');
      expect(back.data).to.deep.equal(products(5).slice(4));
      const first = await getList(back._links['first']?.href.slice(api().origin.length) ?? '');
      expect(first.data).to.deep.equal(products(5).slice(0, 2));
    });
  });

  describe('reading all pages', () => {
    it('sees one snapshot, whatever is published meanwhile', async () => {
      const list = products(210);
      const version = await publish(list);
      const { records, versions } = await walk(`/products?version=${version}&per-page=50`, async (page) => {
        if (page === 1) await publish(products(30));
        if (page === 2) await publish(products(211).toReversed());
      });
      expect(versions).to.deep.equal([String(version)]);
      expect(records).to.deep.equal(list);
      expect((await getList('/products')).data[0]?.product.id).to.equal(211);
    });

    it('sees one snapshot, whatever is rolled back meanwhile', async () => {
      const first = await publish(products(30));
      const list = products(210).toReversed();
      const version = await publish(list);
      const { records, versions } = await walk(`/products?version=${version}&per-page=70`, async (page) => {
        if (page === 1) await goBackTo(first);
      });
      expect(versions).to.deep.equal([String(version)]);
      expect(records).to.deep.equal(list);
    });

    it('sees one snapshot during continuous imports', async () => {
      const list = products(210);
      const version = await publish(list);
      let isPublishing = true;
      let published = 0;
      const publishing = (async () => {
        for (; isPublishing || published < 4; published += 1) {
          const records = products(published % 2 === 0 ? 211 : 205).toReversed();
          await publish(records, { keepVersions: 1_000 });
        }
      })();
      try {
        for (let times = 0; times < 2 || published < 4; times += 1) {
          const { records, versions } = await walk(`/products?version=${version}&per-page=50`);
          expect(versions).to.deep.equal([String(version)]);
          expect(records).to.deep.equal(list);
        }
      } finally {
        isPublishing = false;
        await publishing;
      }
    });

    it('ends with 410 when its version is no longer kept', async () => {
      const version = await publish(products(5));
      const { _links } = await getList(`/products?version=${version}&per-page=2`);
      await publish(one);
      await publish(two);
      const next = _links['next']?.href.slice(api().origin.length) ?? '';
      expect((await get(next)).status).to.equal(200);
      await publish(one);
      const response = await get(next);
      expect(response.status).to.equal(410);
      expect(errorOf(response)).to.deep.include({ name: 'Gone', status: 410 });
    });
  });

  describe('an invalid version', () => {
    const malformed = [
      ...['', '0', '00', '-1', '+1', '1.0', '1e1', '0x1', 'live', 'v1', '1,2', '1%20', '%201', '1%00'],
      ...['%D9%A1', '%FF', '9007199254740992', '1'.repeat(400)],
    ];
    it('returns 400 with the name and accepted values, on every route', async () => {
      const version = await publish(one);
      for (const text of malformed) {
        for (const path of ['/products?', '/products/1?', `/products/changes?since=${version}&`]) {
          const response = await get(`${path}version=${text}`);
          expect(response.status, `${path}version=${text}`).to.equal(400);
          expect(errorOf(response).message, text).to.match(/parameter version .*it accepts a whole number/);
        }
      }
    });

    it('returns 400 if repeated, with equal or different values', async () => {
      const version = await publish(one);
      for (const path of ['/products', '/products/1']) {
        for (const other of [version, version + 1]) {
          const response = await get(`${path}?version=${version}&version=${other}`);
          expect(response.status).to.equal(400);
          expect(errorOf(response).message).to.match(/parameter version is given twice/);
        }
      }
    });

    it('is checked after the key and before the kept versions', async () => {
      expect((await get('/products?version=x')).status, 'nothing is published').to.equal(400);
      const headers = { authorization: 'Bearer x' };
      expect((await get('/products?version=x', headers)).status).to.equal(401);
    });
  });

  describe('a version that is not kept', () => {
    /** Expects 410 on lists and records, with a message that names the kept versions and nothing else. */
    async function expectGone(version: number, kept: readonly number[]): Promise<void> {
      for (const path of ['/products', '/products/1', '/products/999']) {
        const response = await get(`${path}?version=${version}`, { 'if-none-match': '*' });
        expect(response.status, `${path}?version=${version}`).to.equal(410);
        expect(response.headers).not.to.have.any.keys('etag', 'last-modified', 'medref-version');
        const { name, message, status } = errorOf(response);
        expect({ name, status }).to.deep.equal({ name: 'Gone', status: 410 });
        const [asked, ...said] = (message.match(/\d+/g) ?? []).map(Number);
        expect(asked, message).to.equal(version);
        expect(said, message).to.deep.equal(kept);
      }
    }

    it('returns 410 if it was never published: earlier, between or later', async () => {
      const first = await publish(one);
      const { outcome } = await importRecords([], productCollection, { redisUrl: redisUrl() });
      expect(outcome).to.equal('refused');
      const second = await publish(two);
      expect(second - first, 'the refused import must leave a gap').to.be.greaterThan(1);
      for (const never of [first + 1, second + 1, 1_000_000, Number.MAX_SAFE_INTEGER]) {
        await expectGone(never, [first, second]);
      }
    });

    it('returns 410 as soon as KEEP_VERSIONS newer contents were live', async () => {
      const first = await publish(one);
      const second = await publish(two);
      const third = await publish(one);
      expect((await get(`/products?version=${first}`)).status).to.equal(200);
      const fourth = await publish(two);
      await expectGone(first, [second, third, fourth]);
      const fifth = await goBackTo(third); // The fifth version has a content that is already kept, so the rollback deletes none.
      await expectGone(first, [second, third, fourth, fifth]);
      const sixth = await publish(products(9));
      await expectGone(second, [third, fourth, fifth, sixth]);
      for (const kept of [third, fourth, fifth, sixth]) {
        expect((await get(`/products?version=${kept}`)).status).to.equal(200);
      }
    });

    it('returns 410 when KEEP_VERSIONS is lowered', async () => {
      const numbers: number[] = [];
      for (const list of [one, two, one, two]) numbers.push(await publish(list, { keepVersions: 4 }));
      const last = await publish(one, { keepVersions: 2 });
      for (const left of numbers.slice(0, 3)) await expectGone(left, [numbers[3] as number, last]);
    });

    it('disappears with all versions of its content, the one that was live longest ago', async () => {
      const first = await publish(one);
      const second = await publish(two);
      const again = await goBackTo(first);
      const fourth = await publish(two);
      const fifth = await publish(products(9));
      await expectGone(second, [first, again, fourth, fifth]);
      for (const version of [first, again])
        expect((await getList(`/products?version=${version}`)).data).to.deep.equal(one);
      for (const key of contentKeys(keys, first)) expect(await redis().pttl(key), key).to.equal(-1);
      const sixth = await publish(two);
      for (const version of [first, again]) await expectGone(version, [fourth, fifth, sixth]);
    });
  });

  describe('without data', () => {
    it('return 503 before any publication, never 410 or an empty list', async () => {
      await publish(one);
      for (const path of ['/companies?version=1', '/companies/1?version=1', '/companies?version=7']) {
        const response = await get(path);
        expect(response.status, path).to.equal(503);
        expect(Number(response.headers['retry-after'])).to.be.greaterThan(0);
        expect(errorOf(response).message).to.include('companies');
      }
    });

    it('return 503 if the content was deleted by hand, while the live version works', async () => {
      const first = await publish(one);
      await publish(two);
      const { blocks, order, records } = keys.content(first);
      const paths = [`/products?version=${first}`, `/products/1?version=${first}`];
      for (const lost of [
        [blocks, records],
        [order, records],
      ]) {
        await redis().del(...lost);
        await restartApi(); // The new API has nothing in memory.
        for (const path of paths) {
          const response = await get(path);
          expect(response.status, `${path} without ${lost}`).to.equal(503);
          expect(Number(response.headers['retry-after'])).to.be.greaterThan(0);
          expect(response.headers).not.to.have.any.keys('etag', 'medref-version');
        }
        expect((await getList('/products')).data).to.deep.equal(two);
      }
    });

    it('return 503 if part of the content was deleted by hand, never a shorter list', async () => {
      const first = await publish(one);
      await publish(two);
      const { blocks, records } = keys.content(first);
      await redis().del(blocks);
      await redis().hdel(records, '2');
      await restartApi();
      expect((await get(`/products?version=${first}`)).status).to.equal(503);
      await redis().hset(records, '2', JSON.stringify(product(2)));
      expect((await get(`/products?version=${first}`)).status).to.equal(200);
    });

    it('return 503 if the order was truncated by hand before the first read', async () => {
      const { version } = await importList(one);
      const { blocks, order } = keys.content(version as number);
      await redis().del(blocks);
      await redis().hset(order, '0', ((await redis().hgetBuffer(order, '0')) as Buffer).subarray(8));
      expect((await get(`/products?version=${version}`)).status).to.equal(503);
    });

    it("work if only the live version's content was deleted by hand", async () => {
      const first = await publish(one);
      const second = await publish(two);
      await redis().del(...contentKeys(keys, second));
      await restartApi();
      expect((await get('/products')).status).to.equal(503);
      expect((await getList(`/products?version=${first}`)).data).to.deep.equal(one);
    });
  });

  describe('caching', () => {
    it('changes the ETag whenever bytes differ: pinned or live, by version, by page', async () => {
      const first = await publish(one);
      const second = await publish(two);
      const third = await goBackTo(first);
      const paths = ['', `version=${first}`, `version=${second}`, `version=${third}`].flatMap((pin) => [
        ...[`/products?${pin}`, `/products?${pin}&page=2`, `/products?${pin}&per-page=2`].map((path) =>
          path.replace('?&', '?'),
        ),
        ...[1, 2, 3].map((id) => `/products/${id}?${pin}`),
      ]);
      const bodies = new Map<string, string>();
      for (const path of paths) {
        const { status, headers, body } = await get(path);
        if (status === 404) continue; // Not every version has every record.
        expect(status, path).to.equal(200);
        const etag = headers.etag ?? '';
        expect(body.toString(), `${path} has the ETag of other bytes`).to.equal(
          bodies.get(etag) ?? body.toString(),
        );
        bodies.set(etag, body.toString());
      }
      // Each list has its own links, even if the records are the same.
      const lists = [...bodies.values()].filter((body) => body.includes('"_links"'));
      expect(lists).to.have.length(12);
    });

    it('gives a record the same ETag pinned or live in the same version', async () => {
      const first = await publish(one);
      const etagOf = async (path: string) => (await get(path)).headers.etag;
      expect(await etagOf(`/products/1?version=${first}`)).to.equal(await etagOf('/products/1'));
      expect(await etagOf(`/products?version=${first}`)).not.to.equal(await etagOf('/products'));
    });

    it('returns 304 for its own validators, whatever is live by then', async () => {
      const first = await publish(one);
      const paths = [`/products?version=${first}`, `/products/1?version=${first}`];
      const held = await Promise.all(paths.map((path) => get(path)));
      await publish(two);
      await goBackTo(first);
      for (const [i, path] of paths.entries()) {
        const { etag = '', 'last-modified': date = '' } = held[i]?.headers ?? {};
        for (const condition of [{ 'if-none-match': etag }, { 'if-modified-since': date }]) {
          const { status, headers, body } = await get(path, condition);
          expect([status, body.length], path).to.deep.equal([304, 0]);
          expect(headers['medref-version']).to.equal(String(first));
          expect(headers['last-modified']).to.equal(date);
          expect(headers.etag).to.equal(etag);
        }
      }
    });

    it('returns 200 for validators of another version or of the live list', async () => {
      const first = await publish(one);
      const live = await get('/products');
      const second = await publish(two);
      const newer = await get('/products');
      const statusOf = async (version: number, condition: Record<string, string>) =>
        (await get(`/products?version=${version}`, condition)).status;
      const [tag = '', newerTag = ''] = [live.headers.etag, newer.headers.etag];
      const [date = '', newerDate = ''] = [live.headers['last-modified'], newer.headers['last-modified']];
      expect(await statusOf(first, { 'if-none-match': tag })).to.equal(200);
      expect(await statusOf(first, { 'if-none-match': newerTag })).to.equal(200);
      expect(await statusOf(first, { 'if-modified-since': newerDate })).to.equal(200);
      expect(await statusOf(second, { 'if-modified-since': date })).to.equal(200);
    });

    it('returns 410, not 304, for a version that is no longer kept', async () => {
      const first = await publish(one);
      const { etag = '' } = (await get(`/products?version=${first}`)).headers;
      for (const list of [two, one, two]) await publish(list);
      expect((await get(`/products?version=${first}`, { 'if-none-match': etag })).status).to.equal(410);
    });
  });
});
