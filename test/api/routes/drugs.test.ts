// Tests GET /drugs: the drugs of products, under the numbers of their versions.

import { expect } from 'chai';
import {
  type Drug,
  drugs,
  type Product,
  products as productCollection,
} from '../../../shared/collections/products.ts';
import { startApi } from '../../support/api.ts';
import { importRecords } from '../../support/importing.ts';
import { product } from '../../support/records.ts';
import { useRedis } from '../../support/redis-server.ts';
import { useService } from '../../support/service.ts';
import { readList, whichLists } from '../../support/whole-lists.ts';
import { send } from '../../support/wire.ts';

interface List<Item = Drug> {
  data: Item[];
  _links: Record<string, { href: string }>;
  _meta: { totalCount: number; pageCount: number; currentPage: number; perPage: number };
}

interface Change {
  id: number;
  change: string;
  record?: Drug;
}

const drug = (id: number, name: string): Drug => ({ drug: { id, name } });
const of = (id: number, its: Drug) => product(id, its);

const [aspirin, beta, zinc, iron] = [
  drug(70, 'ASPİRİN'),
  drug(9, 'Beta Bloker'),
  drug(100, 'Aspirin Plus'),
  drug(5, 'DEMİR'),
];
const one = [of(3, aspirin), of(1, beta), of(2, aspirin), of(8, zinc)];

describe('GET /drugs', () => {
  const { redis, api, importList, publish, goBackTo, awaitLive } = useService();

  async function list<Item = Drug>(path = '/drugs'): Promise<List<Item>> {
    const response = await api().get(path);
    expect(response.status, `${path}: ${response.text}`).to.equal(200);
    return response.json<List<Item>>();
  }
  const statusOf = async (path: string) => (await api().get(path)).status;

  it('lists each drug of all products once, in order of first appearance', async () => {
    await publish(one);
    const { text } = await api().get('/drugs');
    const link = `{"href":"${api().origin}/drugs?page=1&per-page=200"}`;
    expect(text).to.equal(
      '{"data":[{"drug":{"id":70,"name":"ASPİRİN"}},{"drug":{"id":9,"name":"Beta Bloker"}},{"drug":{"id":100,"name":"Aspirin Plus"}}],' +
        `"_links":{"self":${link},"first":${link},"last":${link}},` +
        '"_meta":{"totalCount":3,"pageCount":1,"currentPage":1,"perPage":200},"success":true}',
    );
  });

  it('returns a drug by its id, and 404, 400, 401 and 405 like any collection', async () => {
    await publish(one);
    expect((await api().get('/drugs/9')).text).to.equal(
      '{"data":{"drug":{"id":9,"name":"Beta Bloker"}},"success":true}',
    );
    expect(await statusOf('/drugs/0070')).to.equal(200);
    for (const [path, status] of Object.entries({
      ...{ '/drugs/3': 404, '/drugs/0': 400, '/drugs/x': 400, '/drugs/9?name=a': 400, '/drugs?pages=1': 400 },
      ...{
        '/drugs?page=0': 400,
        '/drugs/changes': 400,
        '/drugs/changes?since=9': 410,
        '/drugs?version=9': 410,
      },
      ...{ '/drugs/9?version=9': 410, '/drugs/changes?since=1&version=9': 410, '/drugs/9/x': 404 },
    })) {
      const response = await api().get(path);
      expect(response.status, `${path}: ${response.text}`).to.equal(status);
    }
    expect((await api().get('/drugs/3')).json()).to.deep.include({ success: false });
    expect((await send({ ...api(), key: 'another' }, '/drugs')).status).to.equal(401);
    expect((await send(api(), '/drugs', { method: 'POST' })).status).to.equal(405);
  });

  it('is 503 while no products are published', async () => {
    for (const path of ['/drugs', '/drugs/1', '/drugs?name=a', '/drugs?version=1', '/drugs/changes?since=1'])
      expect(await statusOf(path), path).to.equal(503);
  });

  it('finds drugs by name prefix, sorted by name', async () => {
    await publish(one);
    expect((await list('/drugs?name=ASPIRI')).data).to.deep.equal([aspirin, zinc]);
    expect((await list('/drugs?name=aspırın+p')).data).to.deep.equal([zinc]);
    expect((await list('/drugs?name=10'))._meta.totalCount).to.equal(0);
  });

  it('has the version and date of products, other ETags, and page links', async () => {
    const version = await publish(one);
    const [ours, theirs] = await Promise.all([send(api(), '/drugs'), send(api(), '/products')]);
    expect(ours.headers['medref-version']).to.equal(String(version));
    for (const name of ['medref-version', 'last-modified'])
      expect(ours.headers[name]).to.equal(theirs.headers[name]);
    expect(ours.headers.etag).not.to.equal(theirs.headers.etag);
    const headers = { 'if-none-match': ours.headers.etag as string };
    expect((await send(api(), '/drugs', { headers })).status).to.equal(304);
    const first = await list('/drugs?per-page=2');
    const next = await list(first._links['next']?.href.slice(api().origin.length));
    expect([...first.data, ...next.data]).to.deep.equal([aspirin, beta, zinc]);
  });

  it('shares pins, kept versions, changes and rollbacks with products', async () => {
    const first = await publish(one);
    const renamed = drug(9, 'BETA');
    const second = await publish([of(3, aspirin), of(1, renamed), of(4, iron), of(2, aspirin)]);
    expect((await list()).data).to.deep.equal([aspirin, renamed, iron]);
    expect((await list(`/drugs?version=${first}`)).data).to.deep.equal([aspirin, beta, zinc]);
    expect((await api().get(`/drugs/100?version=${first}`)).status).to.equal(200);
    expect(await statusOf('/drugs/100')).to.equal(404);
    expect((await list(`/drugs?name=beta&version=${first}`)).data).to.deep.equal([beta]);
    const changes = await list<Change>(`/drugs/changes?since=${first}`);
    expect(changes.data).to.deep.equal([
      { id: 5, change: 'added', record: iron },
      { id: 9, change: 'changed', record: renamed },
      { id: 100, change: 'removed' },
    ]);
    expect(changes._links['self']?.href).to.include(`/drugs/changes?since=${first}&version=${second}&`);

    const third = await goBackTo(first);
    expect((await list()).data).to.deep.equal([aspirin, beta, zinc]);
    expect((await list<Change>(`/drugs/changes?since=${first}`)).data).to.deep.equal([]);
    expect((await list<Change>(`/drugs/changes?since=${second}`)).data).to.deep.equal([
      { id: 5, change: 'removed' },
      { id: 9, change: 'changed', record: beta },
      { id: 100, change: 'added', record: zinc },
    ]);

    const fourth = await publish([...one, of(20, iron)]);
    for (const same of [first, third]) {
      expect((await list(`/drugs?version=${same}`)).data).to.deep.equal([aspirin, beta, zinc]);
    }
    expect((await list(`/drugs?version=${fourth}`)).data).to.deep.equal([aspirin, beta, zinc, iron]);
    expect((await list<Change>(`/drugs/changes?since=${first}`)).data).to.deep.equal([
      { id: 5, change: 'added', record: iron },
    ]);

    await publish([of(2, aspirin)]);
    expect(await statusOf(`/drugs?version=${second}`), 'three contents are kept').to.equal(410);
    expect(await statusOf(`/drugs?version=${first}`)).to.equal(200);
  });

  it('gets a new version with the same drugs if other fields of products change', async () => {
    const first = await publish(one);
    const before = await send(api(), '/drugs');
    const second = await publish(one.map((it) => ({ ...it, published: false })));
    expect((await list<Change>(`/drugs/changes?since=${first}`)).data).to.deep.equal([]);
    const after = await send(api(), '/drugs');
    expect(after.headers['medref-version']).to.equal(String(second));
    expect(after.body).to.deep.equal(before.body);
    expect(after.headers.etag, 'the ETag comes from the checksum of drugs').to.equal(before.headers.etag);
  });

  it('is rebuilt from the same products if an earlier release derived other drugs', async () => {
    const recordOf = (record: unknown) => drug((record as Product).drug.id, 'OTHER');
    const collection = { ...productCollection, derived: [{ collection: drugs, recordOf }] };
    const first = await publish(one, { collection });
    await publish(one);
    expect((await list()).data).to.deep.equal([aspirin, beta, zinc]);
    expect((await list<Change>(`/drugs/changes?since=${first}`)).data).to.deep.equal(
      [beta, aspirin, zinc].map((record) => ({ id: record.drug.id, change: 'changed', record })),
    );
    expect((await list<Change>(`/products/changes?since=${first}`)).data).to.deep.equal([]);
    expect((await importList(one)).outcome).to.equal('unchanged');
  });

  it('keeps the first of two names of a drug with a warning, and rejects no product', async () => {
    const other = drug(70, 'ASPIRIN');
    const report = await importList([...one, of(10, other), of(11, drug(70, 'Asprin')), of(12, beta)]);
    expect(report).to.deep.include({ outcome: 'published', read: 7, written: 7, rejected: 0 });
    expect(report.warnings).to.have.length(1);
    expect(report.warnings[0])
      .to.match(/^Conflicting drugs share an id; kept the first: .*\.$/)
      .and.to.include(
        'id 70: position 5 has {"drug":{"id":70,"name":"ASPIRIN"}}, position 1 a different record',
      );
    await awaitLive(report.version as number);
    expect((await list()).data).to.deep.equal([aspirin, beta, zinc]);
    expect((await api().get('/drugs/70')).json()).to.deep.include({ data: aspirin });
    expect((await list('/drugs?name=asprin')).data, 'a name that was not kept').to.deep.equal([]);
  });

  it('keeps the first name across batches, and lists at most ten ids', async () => {
    const first = Array.from({ length: 230 }, (_, i) => of(i + 1, drug(i + 1, `D${i}`)));
    const again = Array.from({ length: 30 }, (_, i) => of(i + 1_001, drug(i + 1, `E${i}`)));
    const report = await importList([...first, ...again]);
    expect(report).to.deep.include({ outcome: 'published', written: 260, rejected: 0 });
    expect(report.warnings[0]?.match(/id \d+: /g)).to.have.length(10);
    expect(report.warnings[0]).to.match(/; and others\.$/);
    await awaitLive(report.version as number);
    expect((await list('/drugs?per-page=200&page=1')).data).to.deep.equal(
      first.slice(0, 200).map(({ drug: its }) => ({ drug: its })),
    );
    expect((await list())._meta.totalCount).to.equal(230);
  });

  it('stays unchanged if products are refused, fail, or are imported in a dry run', async () => {
    const live = await publish(one);
    const before = await send(api(), '/drugs');
    const refused = await importList([of(3, iron)], { force: false });
    expect(refused.outcome).to.equal('refused');
    expect((await importList([of(3, iron)], { dryRun: true })).outcome).to.equal('dry-run');
    const broken = { url: new URL('http://127.0.0.1:1/'), token: undefined };
    const limits = { backoffMs: 1 };
    expect((await importList(one, { upstream: broken, upstreamLimits: limits })).outcome).to.equal('failed');
    const after = await send(api(), '/drugs');
    expect(after.body).to.deep.equal(before.body);
    expect(after.headers.etag).to.equal(before.headers.etag);
    const left = await redis().keys('medref:{products}:drugs:*');
    const others = left.filter((key) => !key.startsWith(`medref:{products}:drugs:${live}:`));
    expect(others.filter((key) => !key.includes(`:${refused.candidate}:`))).to.deep.equal([]);
  });
});

describe(`GET /drugs with the first products of ${whichLists}`, () => {
  const server = useRedis();

  it('lists all their drugs, each under its first name, by first appearance', async () => {
    const some = readList<Product>('products').slice(0, 1_500);
    const report = await importRecords(some, productCollection, { redisUrl: server().url });
    expect([report.outcome, report.rejected]).to.deep.equal(['published', 0]);
    const expected = new Map<number, Drug>();
    for (const { drug: its } of some) if (!expected.has(its.id)) expected.set(its.id, { drug: its });
    const api = await startApi({ redisUrl: server().url });
    try {
      const found: Drug[] = [];
      for (let next: string | undefined = '/drugs'; next; ) {
        const { data, _links, _meta }: List = (await api.get(next)).json<List>();
        expect(_meta.totalCount).to.equal(expected.size);
        found.push(...data);
        next = _links['next']?.href.slice(api.origin.length);
      }
      expect(found.length).to.be.above(400);
      expect(found).to.deep.equal([...expected.values()]);
    } finally {
      await api.stop();
    }
  });
});
