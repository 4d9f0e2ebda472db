// Tests GET /{collection}/changes?since=N: the exact changes, the envelope, paging and links, and the accepted versions.

import { setTimeout as sleep } from 'node:timers/promises';
import { expect } from 'chai';
import { companies as companyCollection } from '../../../shared/collections/companies.ts';
import { type Product, products as productCollection } from '../../../shared/collections/products.ts';
import { startApi } from '../../support/api.ts';
import { importRecords } from '../../support/importing.ts';
import { productKeys as keys } from '../../support/keys.ts';
import { company, product, products } from '../../support/records.ts';
import { useService } from '../../support/service.ts';
import { send, type WireAnswer } from '../../support/wire.ts';

interface Change {
  readonly id: number;
  readonly change: 'added' | 'changed' | 'removed';
  readonly record?: unknown;
}

interface ChangeList {
  readonly data: Change[];
  readonly _links: Readonly<Record<string, { readonly href: string }>>;
  readonly _meta: Readonly<Record<'totalCount' | 'pageCount' | 'currentPage' | 'perPage', number>>;
}

describe('GET /{collection}/changes', () => {
  const { redis, redisUrl, api, publish, goBackTo, importList, awaitLive } = useService();
  const get = (path: string, headers: Record<string, string> = {}) => send(api(), path, { headers });
  const parsed = <Shape>({ body }: WireAnswer) => JSON.parse(body.toString()) as Shape;
  const messageOf = (response: WireAnswer) => parsed<{ data: { message: string } }>(response).data.message;

  async function getList(path: string): Promise<ChangeList> {
    const response = await get(path);
    expect(response.status, `${path}: ${response.body}`).to.equal(200);
    return parsed(response);
  }

  /** Returns all changes of products since a version, on one page. */
  const changesSince = async (since: number, more = ''): Promise<Change[]> =>
    (await getList(`/products/changes?since=${since}${more}`)).data;

  /** Follows the links to the last page, and calls `between` after each page. */
  async function walk(path: string, between: (page: number) => Promise<unknown> = async () => undefined) {
    const changes: Change[] = [];
    const versions = new Set<string>();
    for (let next: string | undefined = path, page = 1; next !== undefined; page += 1) {
      const response = await get(next);
      expect(response.status, `${next}: ${response.body}`).to.equal(200);
      const { data, _links } = parsed<ChangeList>(response);
      changes.push(...data);
      versions.add(String(response.headers['medref-version']));
      next = _links['next']?.href.slice(api().origin.length);
      await between(page);
    }
    return { changes, versions: [...versions] };
  }

  const other = (id: number): Product => product(id, { published: false });
  const added = (record: Product): Change => ({ id: record.product.id, change: 'added', record });
  const changed = (record: Product): Change => ({ id: record.product.id, change: 'changed', record });
  const removed = (id: number): Change => ({ id, change: 'removed' });

  describe('the list', () => {
    it('has id, change and the current record in this order, without the record if removed', async () => {
      const since = await publish([product(1), product(2), product(3)]);
      const version = await publish([product(4), product(1), other(3)]);
      const response = await get(`/products/changes?since=${since}`);
      const data = [
        `{"id":2,"change":"removed"}`,
        `{"id":3,"change":"changed","record":${JSON.stringify(other(3))}}`,
        `{"id":4,"change":"added","record":${JSON.stringify(product(4))}}`,
      ];
      const href = `${api().origin}/products/changes?since=${since}&version=${version}&page=1&per-page=200`;
      expect(response.body.toString()).to.equal(
        `{"data":[${data}],"_links":{"self":{"href":"${href}"},"first":{"href":"${href}"},"last":{"href":"${href}"}},` +
          `"_meta":{"totalCount":3,"pageCount":1,"currentPage":1,"perPage":200},"success":true}`,
      );
    });

    it('has the headers of every data response, with the version at which it ends, for GET and HEAD', async () => {
      const since = await publish([product(1)]);
      const version = await publish([product(2)]);
      const live = await get('/products');
      for (const method of ['GET', 'HEAD']) {
        const { status, headers } = await send(api(), `/products/changes?since=${since}`, { method });
        expect(status).to.equal(200);
        expect(headers['medref-version']).to.equal(String(version));
        expect(headers['content-type']).to.equal('application/json');
        expect(headers.etag).to.match(/^W\/"[A-Za-z0-9_-]{20,}"$/);
        for (const name of ['last-modified', 'cache-control', 'vary', 'accept-ranges']) {
          expect(headers[name], name).to.be.a('string').and.equal(live.headers[name]);
        }
      }
    });

    it('is sorted by numeric id, whatever the order of the list', async () => {
      const most = Number.MAX_SAFE_INTEGER;
      const since = await publish([product(9), product(100), product(50)]);
      await publish(
        [most, 20, 3, 100, 1_000, 9].map((id) => product(id, { barcodes: [], published: id !== 9 })),
      );
      const changes = await changesSince(since);
      expect(changes.map(({ id }) => id)).to.deep.equal([3, 9, 20, 50, 100, 1_000, most]);
    });

    it('works for companies, with their own versions', async () => {
      await publish([product(1)]);
      await publish([product(2)]);
      const since = await publish([company(1), company(2)], { collection: companyCollection });
      await publish([company(2, { fax: '1' }), company(3)], { collection: companyCollection });
      expect((await getList(`/companies/changes?since=${since}`)).data).to.deep.equal([
        { id: 1, change: 'removed' },
        { id: 2, change: 'changed', record: company(2, { fax: '1' }) },
        { id: 3, change: 'added', record: company(3) },
      ]);
    });

    it('has every record whose bytes differ', async () => {
      const spaced = { ...product(1), drug: { id: 1, name: 'DRUG 1 ' } };
      const since = await publish([product(1), product(2)]);
      await publish([spaced, product(2)]);
      expect(await changesSince(since)).to.deep.equal([changed(spaced)]);
    });

    it('is empty if only the order changed', async () => {
      const since = await publish(products(9));
      const version = await publish(products(9).toReversed());
      const { data, _meta } = await getList(`/products/changes?since=${since}`);
      expect(version).to.be.greaterThan(since);
      expect({ data, totalCount: _meta.totalCount }).to.deep.equal({ data: [], totalCount: 0 });
    });

    it('is empty since the live version', async () => {
      for (const id of [1, 2]) {
        const live = await publish([product(id)]);
        const response = await get(`/products/changes?since=${live}`);
        expect(response.status).to.equal(200);
        expect(response.headers['medref-version']).to.equal(String(live));
        const { data, _meta, _links } = parsed<ChangeList>(response);
        expect(data).to.deep.equal([]);
        expect(_meta).to.deep.equal({ totalCount: 0, pageCount: 0, currentPage: 1, perPage: 200 });
        expect(Object.keys(_links)).to.deep.equal(['self', 'first', 'last']);
      }
    });

    it('has all records if both versions share no id', async () => {
      const since = await publish([product(1), product(2)]);
      await publish([product(3)]);
      expect(await changesSince(since)).to.deep.equal([removed(1), removed(2), added(product(3))]);
    });
  });

  describe('across several versions', () => {
    /** Publishes these contents one after the other. Returns the numbers of the versions. */
    async function publishAll(...contents: readonly Product[][]): Promise<number[]> {
      const numbers: number[] = [];
      for (const content of contents) numbers.push(await publish(content));
      return numbers;
    }
    const stays = product(7);

    it('omits records that changed and changed back', async () => {
      const [first = 0, second = 0] = await publishAll(
        [stays, product(1)],
        [stays, other(1)],
        [stays, product(1)],
      );
      expect(await changesSince(first)).to.deep.equal([]);
      expect(await changesSince(second)).to.deep.equal([changed(product(1))]);
    });

    it('omits records that were added and removed', async () => {
      const [first = 0, second = 0] = await publishAll([stays], [stays, product(1)], [stays]);
      expect(await changesSince(first)).to.deep.equal([]);
      expect(await changesSince(second)).to.deep.equal([removed(1)]);
    });

    it('omits records that were added, changed and removed', async () => {
      const [first = 0] = await publishAll([stays], [stays, product(1)], [stays, other(1)], [stays]);
      expect(await changesSince(first)).to.deep.equal([]);
    });

    it('omits records that were removed and added again unchanged', async () => {
      const [first = 0, second = 0] = await publishAll([stays, product(1)], [stays], [product(1), stays]);
      expect(await changesSince(first)).to.deep.equal([]);
      expect(await changesSince(second)).to.deep.equal([added(product(1))]);
    });

    it('has records as changed that were removed and added again differently', async () => {
      const [first = 0] = await publishAll([stays, product(1)], [stays], [stays, other(1)]);
      expect(await changesSince(first)).to.deep.equal([changed(other(1))]);
    });

    it('has records as removed or added by their first and last state', async () => {
      const [first = 0] = await publishAll(
        [stays, product(1)],
        [stays, other(1), product(2)],
        [stays, other(2)],
      );
      expect(await changesSince(first)).to.deep.equal([removed(1), added(other(2))]);
    });

    it('is the same in one step as in parts', async () => {
      const contents = Array.from({ length: 8 }, (_, n) =>
        products(12)
          .filter(({ product: { id } }) => (id + n) % 5 !== 0)
          .map((record) => ((record.product.id + n) % 3 === 0 ? other(record.product.id) : record)),
      );
      const numbers = await publishAll(...contents);
      for (const [i, since] of numbers.entries()) {
        const before = new Map(contents[i]?.map((record) => [record.product.id, JSON.stringify(record)]));
        const now = new Map(contents.at(-1)?.map((record) => [record.product.id, record]));
        const expected = products(12).flatMap(({ product: { id } }): Change[] => {
          const record = now.get(id);
          if (!record) return before.has(id) ? [removed(id)] : [];
          if (!before.has(id)) return [added(record)];
          return before.get(id) === JSON.stringify(record) ? [] : [changed(record)];
        });
        expect(await changesSince(since), `since the ${i + 1}th`).to.deep.equal(expected);
      }
    });

    it('is kept longer than the versions', async () => {
      const contents = Array.from({ length: 6 }, (_, n) => products(n + 1));
      const [first = 0] = await publishAll(...contents);
      expect((await get(`/products?version=${first}`)).status).to.equal(410);
      expect(await changesSince(first)).to.deep.equal(products(6).slice(1).map(added));
    });

    it('ignores imports that published nothing', async () => {
      const first = await publish([stays, product(1)]);
      const options = { redisUrl: redisUrl() };
      expect((await importRecords([], productCollection, options)).outcome).to.equal('refused');
      const same = await importRecords([stays, product(1)], productCollection, options);
      expect(same.outcome).to.equal('unchanged');
      await publish([stays]);
      expect(await changesSince(first)).to.deep.equal([removed(1)]);
    });
  });

  describe('across rollbacks', () => {
    const one = [product(1), product(2)];
    const two = [other(2), product(3)];

    it('has the records that the rollback changed back', async () => {
      const first = await publish(one);
      const second = await publish(two);
      await goBackTo(first);
      expect(await changesSince(second)).to.deep.equal([added(product(1)), changed(product(2)), removed(3)]);
      expect(await changesSince(first)).to.deep.equal([]);
    });

    it('is exact before, within and after a series of rollbacks and imports', async () => {
      const first = await publish(one);
      const second = await publish(two);
      const third = await goBackTo(first);
      const fourth = await publish([...one, product(4)]);
      const fifth = await goBackTo(second);
      expect(await changesSince(first)).to.deep.equal([removed(1), changed(other(2)), added(product(3))]);
      expect(await changesSince(second)).to.deep.equal([]);
      expect(await changesSince(third)).to.deep.equal(await changesSince(first));
      expect(await changesSince(fourth)).to.deep.equal([
        ...(await changesSince(first)).slice(0, 3),
        removed(4),
      ]);
      expect(await changesSince(fifth)).to.deep.equal([]);
    });
  });

  describe('with a version', () => {
    it('ends at that version with its records, whatever is live', async () => {
      const first = await publish([product(1), product(2)]);
      const second = await publish([other(1), product(3)]);
      const third = await publish([product(1)]);
      const expected = [changed(other(1)), removed(2), added(product(3))];
      expect(await changesSince(first, `&version=${second}`)).to.deep.equal(expected);
      expect(await changesSince(first, `&version=${third}`)).to.deep.equal([removed(2)]);
      expect(await changesSince(first)).to.deep.equal([removed(2)]);
      expect(await changesSince(second, `&version=${second}`)).to.deep.equal([]);
      const { headers } = await get(`/products/changes?version=${second}&since=${first}`);
      expect(headers['medref-version']).to.equal(String(second));
    });

    it('is 410 if that is not kept, and 400 if since is later, which is checked first', async () => {
      const first = await publish([product(1)]);
      const second = await publish([product(2)]);
      for (const n of [3, 4, 5]) await publish([product(n)]);
      for (const since of [first, second, 99]) {
        for (const gone of [first, second, 77]) {
          const response = await get(`/products/changes?since=${since}&version=${gone}`);
          const [status, message] =
            since > gone
              ? [400, /since=\d+ is later/]
              : [410, new RegExp(`^Version ${gone} of products is not kept`)];
          expect(response.status, `since=${since}&version=${gone}`).to.equal(status);
          expect(messageOf(response)).to.match(message);
        }
      }
    });
  });

  describe('paging', () => {
    let since: number;
    let version: number;
    const all = products(450).map(({ product: { id } }) =>
      id % 3 === 0 ? removed(id) : id % 3 === 1 ? changed(other(id)) : added(product(id)),
    );
    beforeEach(async () => {
      since = await publish(products(450).filter(({ product: { id } }) => id % 3 !== 2));
      const now = all.flatMap(({ record }) => (record ? [record] : []));
      version = await publish(now.toReversed());
    });

    it('works as for any list: 200 per page by default', async () => {
      for (const [query, from, to, page, perPage] of [
        ['', 0, 200, 1, 200],
        ['&page=3', 400, 450, 3, 200],
        ['&per-page=1000', 0, 200, 1, 200],
        ['&per-page=7&page=2', 7, 14, 2, 7],
        ['&page=99', 450, 450, 99, 200],
      ] as const) {
        const { data, _meta } = await getList(`/products/changes?since=${since}${query}`);
        expect(data, query).to.deep.equal(all.slice(from, to));
        const pageCount = Math.ceil(450 / perPage);
        expect(_meta, query).to.deep.equal({ totalCount: 450, pageCount, currentPage: page, perPage });
      }
    });

    it('has links with since and the version at which it ends, before page and per-page', async () => {
      for (const query of [
        `since=${since}&page=2&per-page=100`,
        `per-page=100&page=2&since=0${since}`,
        `version=${version}&per-page=100&since=${since}&page=2`,
      ]) {
        const { _links } = await getList(`/products/changes?${query}`);
        const address = `${api().origin}/products/changes?since=${since}&version=${version}`;
        const to = (page: number) => ({ href: `${address}&page=${page}&per-page=100` });
        expect(Object.entries(_links)).to.deep.equal([
          ...[
            ['self', to(2)],
            ['first', to(1)],
            ['last', to(5)],
            ['next', to(3)],
            ['prev', to(1)],
          ],
        ]);
      }
    });

    it('leads back from past the end', async () => {
      const { _links } = await getList(`/products/changes?since=${since}&page=99`);
      expect(_links).not.to.have.property('next');
      const last = await getList(_links['prev']?.href.slice(api().origin.length) ?? '');
      expect(last.data).to.deep.equal(all.slice(400));
    });

    it('reads one list, whatever is published and rolled back between pages', async () => {
      const { changes, versions } = await walk(
        `/products/changes?since=${since}&per-page=100`,
        async (page) => {
          if (page === 1) await publish(products(9));
          if (page === 3) await goBackTo(since);
        },
      );
      expect(versions).to.deep.equal([String(version)]);
      expect(changes).to.deep.equal(all);
      expect(await changesSince(since), 'the version that is live by then').to.deep.equal([]);
    });

    it('reads one list during continuous imports', async () => {
      let isPublishing = true;
      let published = 0;
      const publishing = (async () => {
        for (; isPublishing || published < 4; published += 1) {
          const records =
            published % 2 === 0 ? products(449) : products(450).map((it) => other(it.product.id));
          await publish(records, { keepVersions: 1_000 });
        }
      })();
      try {
        for (let times = 0; times < 5 || published < 4; times += 1) {
          const path = `/products/changes?since=${since}&version=${version}&per-page=150`;
          const { changes, versions } = await walk(path);
          expect(versions).to.deep.equal([String(version)]);
          expect(changes).to.deep.equal(all);
          // A walk without a pinned version ends at the version that is live when it begins.
          const unpinned = await walk(`/products/changes?since=${version}&per-page=150`);
          expect(unpinned.versions).to.have.length(1);
          const ids = unpinned.changes.map(({ id }) => id);
          expect(ids).to.deep.equal([...new Set(ids)].sort((a, b) => a - b));
        }
      } finally {
        isPublishing = false;
        await publishing;
      }
    });
  });

  describe('since', () => {
    it('returns 400 if missing, with its name and accepted values', async () => {
      const version = await publish([product(1)]);
      for (const query of ['', '?', '?page=1', `?version=${version}`]) {
        const response = await get(`/products/changes${query}`);
        expect(response.status, query).to.equal(400);
        expect(messageOf(response)).to.match(/^The parameter since is missing; it accepts a whole number/);
      }
    });

    it('returns 400 if empty, malformed, zero or too large, with its name and accepted values', async () => {
      await publish([product(1)]);
      for (const text of [
        ...['', '0', '000', '-1', '+1', '1.0', '1e3', '0x1', 'live', 'v1', '1%20', '%201', '1,2', '1%00'],
        ...['%D9%A1', '%FF', '2026-01-01', '9007199254740992', '1'.repeat(400)],
      ]) {
        const response = await get(`/products/changes?since=${text}`);
        expect(response.status, text).to.equal(400);
        expect(messageOf(response), text).to.match(/^The parameter since .*it accepts a whole number/);
      }
    });

    it('returns 400 if repeated, and for any unknown parameter', async () => {
      const version = await publish([product(1)]);
      const twice = await get(`/products/changes?since=${version}&since=${version}`);
      expect(twice.status).to.equal(400);
      expect(messageOf(twice)).to.match(/^The parameter since is given twice;/);
      for (const name of ['name', 'barcode', 'until', 'Since', 'id']) {
        const response = await get(`/products/changes?since=${version}&${name}=1`);
        expect(response.status, name).to.equal(400);
        expect(messageOf(response))
          .to.include(`"${name}"`)
          .and.to.include('since, wait, version, page and per-page');
      }
    });

    it('returns 400 on /{collection} and /{collection}/{id}', async () => {
      const version = await publish([product(1)]);
      for (const path of ['/products', '/products/1']) {
        expect((await get(`${path}?since=${version}`)).status, path).to.equal(400);
      }
    });

    it('returns 410 if later than the live version', async () => {
      const version = await publish([product(1)]);
      for (const since of [version + 1, Number.MAX_SAFE_INTEGER]) {
        const response = await get(`/products/changes?since=${since}`);
        expect(response.status, `since=${since}`).to.equal(410);
        expect(messageOf(response)).to.match(
          /since version \d+ are not kept, or this version was never published/,
        );
        expect(messageOf(response)).to.include(`is ${version}. Read the whole list again.`);
        expect(response.headers).not.to.have.any.keys('etag', 'medref-version');
      }
    });

    it('returns 400 if later than version', async () => {
      const first = await publish([product(1)]);
      const second = await publish([product(2)]);
      const never = `since=${first}&version=7`;
      for (const query of [
        `since=${second}&version=${first}`,
        `since=${second + 1}&version=${second}`,
        never,
      ]) {
        const response = await get(`/products/changes?${query}`);
        expect(response.status, query).to.equal(400);
        expect(messageOf(response), query).to.match(/since=\d+ is later/);
        expect(response.headers).not.to.have.any.keys('etag', 'medref-version');
      }
    });

    it('returns 410 if it was never published, with the oldest possible value', async () => {
      expect((await importRecords([], productCollection, { redisUrl: redisUrl() })).outcome).to.equal(
        'refused',
      );
      const first = await publish([product(1)]);
      await importRecords([], productCollection, { redisUrl: redisUrl() });
      const second = await publish([product(2)]);
      const never = [first - 1, second - 1];
      expect(second - first, 'the refused import must leave a gap').to.equal(2);
      for (const since of never) {
        const response = await get(`/products/changes?since=${since}`, { 'if-none-match': '*' });
        expect(response.status, `since=${since}`).to.equal(410);
        expect(messageOf(response).match(/\d+/g)).to.deep.equal([String(since), String(first)]);
      }
    });

    it('returns 503 while nothing is published, and 400 if malformed even then', async () => {
      const response = await get('/products/changes?since=1');
      expect(response.status).to.equal(503);
      expect(Number(response.headers['retry-after'])).to.be.greaterThan(0);
      expect((await get('/products/changes?since=x')).status).to.equal(400);
      expect((await get('/products/changes')).status).to.equal(400);
    });

    it('works for the last 100 versions, and returns 410 with the oldest possible value before those', async function () {
      this.timeout(60_000);
      const numbers: number[] = [];
      // Each version adds the product of its own number. Every second version changes product 1.
      for (let n = 1; n <= 102; n += 1) {
        const own = n === 1 ? [] : [product(n)];
        const { version } = await importList([n % 2 === 0 ? other(1) : product(1), ...own]);
        numbers.push(version as number);
      }
      await awaitLive(numbers.at(-1) as number);
      const [first = 0, second = 0, third = 0] = numbers;
      const one = await get(`/products/changes?since=${first}`);
      expect(one.status).to.equal(410);
      expect(messageOf(one).match(/\d+/g)).to.deep.equal([String(first), String(second)]);
      const live = added(product(102));
      expect(await changesSince(second)).to.deep.equal([removed(2), live]);
      expect(await changesSince(third)).to.deep.equal([changed(other(1)), removed(3), live]);
      for (const [i, since] of numbers.entries()) {
        const { status } = await get(`/products/changes?since=${since}`);
        expect(status, `since the ${i + 1}th of 102`).to.equal(i === 0 ? 410 : 200);
      }
      await publish([product(500)]);
      expect((await get(`/products/changes?since=${second}`)).status).to.equal(410);
      expect((await get(`/products/changes?since=${third}`)).status).to.equal(200);
      const sets = (await redis().keys('medref:{products}:*:changes')).filter(
        (key) => !key.includes(':drugs:'),
      );
      expect(sets, 'change sets in Redis').to.have.length.within(100, 102);
      const ofDrugs = await redis().keys('medref:{products}:drugs:*:changes');
      expect(ofDrugs, 'change sets of drugs in Redis').to.have.length.within(100, 102);
    });
  });

  describe('since a date and time', () => {
    const encoded = (time: string) => encodeURIComponent(time);
    /** Returns when versions were published, by number. */
    const published = async () => {
      const { data } = parsed<{ data: { version: number; publishedAt: string }[] }>(
        await get('/products/versions'),
      );
      return new Map(data.map((it) => [it.version, Date.parse(it.publishedAt)]));
    };

    it('returns the changes since the last version until then, also if that version is not kept', async () => {
      const versions: number[] = [];
      const times = new Map<number, number>();
      for (let n = 1; n <= 6; n += 1) {
        versions.push(await publish(products(10 + n)));
        for (const [version, ms] of await published()) times.set(version, ms);
      }
      for (const [n, version] of versions.slice(1).entries()) {
        const ms = times.get(version) as number;
        for (const [time, since] of [
          [new Date(ms).toISOString(), version],
          [new Date(ms - 1).toISOString(), versions[n] as number],
          [new Date(ms + 3 * 3_600_000).toISOString().replace('Z', '+03:00'), version],
        ] as const) {
          const { data, _links } = await getList(`/products/changes?since=${encoded(time)}`);
          expect(data, time).to.deep.equal(await changesSince(since));
          expect(_links['self']?.href).to.include(`since=${encoded(time)}&version=${versions.at(-1)}`);
        }
      }
      expect((await getList('/products/changes?since=2999-01-01T00:00:00Z')).data).to.deep.equal([]);
      expect((await get('/products/changes?since=2001-01-01T00:00:00Z')).status).to.equal(410);
    });

    it('returns 400 if the version is later than version', async () => {
      const first = await publish(products(3));
      await publish(products(4));
      expect((await get(`/products/changes?since=2999-01-01T00:00:00Z&version=${first}`)).status).to.equal(
        400,
      );
    });

    for (const wrong of [
      ...[
        '2026-11-22',
        '2026-11-22T03:00:00',
        '2026-02-30T03:00:00Z',
        '2026-13-01T03:00:00Z',
        '2026-11-22T24:00:00Z',
      ],
      ...['2026-11-22 03:00:00Z', 'yesterday', '2026-11-22T03:00:00+3', '2026-11-22T03:00Z'],
    ])
      it(`returns 400 for ${wrong}`, async () => {
        const response = await get(`/products/changes?since=${encoded(wrong)}`);
        expect(response.status).to.equal(400);
        expect(messageOf(response)).to.match(
          /^The parameter since is "[^"]*"; it accepts a whole number .*, or a date and time such as 2026-11-22T03:00:00Z \(RFC 3339\)\.$/,
        );
      });
  });

  describe('with data lost in Redis', () => {
    it('is 503 if records of the version at which it ends are gone', async () => {
      const since = await publish([product(1)]);
      const version = await publish([product(2)]);
      await redis().del(keys.content(version).records);
      expect((await get(`/products/changes?since=${since}`)).status).to.equal(503);
    });

    for (const [what, lose] of [
      ['a change set', (key: string) => redis().del(key)],
      ['a part of one', (key: string) => redis().hdel(key, '1')],
    ] as const) {
      it(`is 410 if ${what} is gone, never a list without it`, async () => {
        const first = await publish([product(1)]);
        const second = await publish([product(2)]);
        await lose(keys.changeSet(second));
        const response = await get(`/products/changes?since=${first}`);
        expect([response.status, messageOf(response)]).to.deep.equal([
          410,
          `Changes of products since version ${first} are incomplete in Redis. Read the whole list again.`,
        ]);
        expect(await changesSince(second)).to.deep.equal([]);
        expect((await get(`/drugs/changes?since=${first}`)).status).to.equal(200);
      });
    }

    it('starts again at a version that could not be compared with the previous one', async () => {
      const first = await publish([product(1)]);
      const second = await publish([product(2)]);
      await redis().del(keys.content(second).records);
      const third = await publish([product(3)]);
      for (const since of [first, second]) {
        const response = await get(`/products/changes?since=${since}`);
        expect(response.status).to.equal(410);
        expect(messageOf(response).match(/\d+/g)).to.deep.equal([String(since), String(third)]);
      }
      expect(await changesSince(third)).to.deep.equal([]);
      await publish([product(4)]);
      expect(await changesSince(third)).to.deep.equal([removed(3), added(product(4))]);
    });
  });

  describe('caching', () => {
    it('changes the ETag by since, version and page, and keeps it for the same list', async () => {
      const first = await publish(products(3));
      const second = await publish(products(5));
      const third = await publish(products(8));
      const etagOf = async (query: string) => (await get(`/products/changes?${query}`)).headers.etag;
      const tags = await Promise.all(
        [
          ...[`since=${first}`, `since=${second}`, `since=${third}`, `since=${first}&page=2`],
          ...[`since=${first}&per-page=2`, `since=${first}&version=${second}`, `since=${first}&page=3`],
        ].map(etagOf),
      );
      expect(new Set(tags).size).to.equal(tags.length);
      expect(await etagOf(`since=${first}&version=${third}`)).to.equal(await etagOf(`since=${first}`));
      expect((await get('/products')).headers.etag).not.to.be.oneOf(tags);
    });

    it('changes the ETag if the same content ends the list under another number', async () => {
      const first = await publish(products(3));
      await publish(products(5));
      const back = await goBackTo(first);
      const tag = async (until: number) =>
        (await get(`/products/changes?since=${first}&version=${until}`)).headers.etag;
      expect(await tag(back)).not.to.equal(await tag(first));
    });

    it('returns 304 for its own validators until another version is live', async () => {
      const since = await publish(products(3));
      const version = await publish(products(5));
      const path = `/products/changes?since=${since}`;
      const { etag = '', 'last-modified': date = '' } = (await get(path)).headers;
      for (const condition of [{ 'if-none-match': etag }, { 'if-modified-since': date }]) {
        const { status, headers, body } = await get(path, condition);
        expect([status, body.length]).to.deep.equal([304, 0]);
        expect(headers['medref-version']).to.equal(String(version));
        expect(headers.etag).to.equal(etag);
      }
      await publish(products(6));
      for (const condition of [{ 'if-none-match': etag }, { 'if-modified-since': date }]) {
        expect((await get(path, condition)).status).to.equal(200);
        expect((await get(`${path}&version=${version}`, condition)).status).to.equal(304);
      }
    });

    it('is not computed for a client that already has it', async () => {
      const since = await publish(products(20));
      await publish(products(19));
      const path = `/products/changes?since=${since}`;
      const host = 'data.example'; // Links and ETags contain the host, whichever process responds.
      const { etag = '' } = (await send(api(), path, { headers: { host } })).headers;
      const scans = async () =>
        Number(/cmdstat_hscan:calls=(\d+)/.exec(await redis().info('commandstats'))?.[1] ?? 0);
      const other = await startApi({ redisUrl: redisUrl() }); // It has nothing in memory.
      const ask = (query: string, condition: Record<string, string> = {}) =>
        send(other, `/products/changes?${query}`, { headers: { host, ...condition } });
      try {
        const before = await scans();
        expect((await ask(`since=${since}`, { 'if-none-match': etag })).status).to.equal(304);
        expect(await scans()).to.equal(before);
        await redis().zrem(keys.changeSets, since);
        const gone = await ask(`since=${since}`, { 'if-none-match': '*' });
        expect(gone.status, 'no condition matches a version that is not kept').to.equal(410);
      } finally {
        await other.stop();
      }
    });

    it('is of the requested collection, although drugs share the versions of products', async () => {
      const since = await publish(products(5));
      await publish([...products(4), other(5)]);
      expect(await changesSince(since)).to.deep.equal([changed(other(5))]);
      expect((await getList(`/drugs/changes?since=${since}`)).data).to.deep.equal([]);
    });

    it('is empty since a version that only another process has served so far', async () => {
      const first = await publish(products(5));
      const older = (await redis().get(keys.live)) as string;
      const second = await publish(products(6));
      const newer = (await redis().get(keys.live)) as string;
      for (let n = 0; n < 3; n += 1) {
        await redis().set(keys.live, older);
        while ((await get('/products')).headers['medref-version'] !== String(first)) await sleep(20);
        await redis().set(keys.live, newer);
        expect(await changesSince(second)).to.deep.equal([]);
      }
    });

    it('is computed once for all who request its pages at the same time, and again for later requests', async () => {
      const since = await publish(products(5));
      await publish(products(400));
      const changeSetsRead = async () =>
        Number(/^cmdstat_hscan:calls=(\d+)/m.exec(await redis().info('commandstats'))?.[1] ?? 0);
      const pages = Array.from(
        { length: 20 },
        (_, i) => `/products/changes?since=${since}&per-page=20&page=${i + 1}`,
      );
      const before = await changeSetsRead();
      const responses = await Promise.all(pages.map((path) => getList(path)));
      expect(responses.flatMap(({ data }) => data)).to.deep.equal(products(400).slice(5).map(added));
      const once = (await changeSetsRead()) - before;
      expect(once).to.be.above(0);
      for (const path of pages) await getList(path);
      expect(await changeSetsRead()).to.equal(before + once);

      await publish([...products(399), product(401)]);
      expect((await getList(pages[0] as string))._meta.totalCount).to.equal(395);
      const version = (await get('/products')).headers['medref-version'];
      await getList(`/products/changes?since=${since}&version=${version}&per-page=7`);
      expect(await changeSetsRead(), 'two change sets lie between').to.equal(before + 3 * once);
    });

    it('requires a key, and allows only GET and HEAD', async () => {
      await publish([product(1)]);
      const path = '/products/changes?since=1';
      expect((await get(path, { authorization: 'Bearer x' })).status).to.equal(401);
      const posted = await send(api(), path, { method: 'POST' });
      expect([posted.status, posted.headers['allow']]).to.deep.equal([405, 'GET, HEAD']);
    });
  });
});
