// What releases before have stored: served, upgraded, rolled back to. The dumps were made by test/stored/store-dump.ts.

import { createHash } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { expect } from 'chai';
import { repair } from '../importer/repair.ts';
import { storedValidators } from '../importer/validators.ts';
import { isDamaged, verify } from '../importer/verify.ts';
import { storedRecord } from '../importer/writing/content-writer.ts';
import type { Product } from '../shared/collections/products.ts';
import { products as productCollection } from '../shared/collections/products.ts';
import { currentFormat, formatOf } from '../shared/formats/content-format.ts';
import { openEntries, packEntries } from '../shared/formats/search-page.ts';
import {
  type ContentFacts,
  documentOf,
  type LiveVersion,
  readKeptVersions,
  readLiveVersion,
} from '../shared/store/versions.ts';
import { storedProducts } from './stored/stored-lists.ts';
import { importFrom } from './support/importing.ts';
import { companyKeys, productKeys as keys, readOrder } from './support/keys.ts';
import { companies } from './support/records.ts';
import { useService } from './support/service.ts';
import { dumpFile, loadDump } from './support/stored-dump.ts';
import { startUpstreamServer } from './support/upstream-server.ts';

interface List<Element> {
  readonly data: Element[];
  readonly _meta: { readonly totalCount: number };
}

for (const format of Array.from({ length: currentFormat - 1 }, (_, n) => n + 1))
  describe(`what a release has stored in the format ${format}`, () => aboutFormat(format));

function aboutFormat(format: number): void {
  const service = useService();
  /** The numbers of what it has published, one after the other. */
  let numbers: number[];
  const last = storedProducts.at(-1) as readonly Product[];
  const middle = storedProducts[1] as readonly Product[];
  beforeEach(async () => {
    await loadDump(service.redis(), dumpFile(format));
    numbers = (await readKeptVersions(service.redis(), keys)).map(({ version }) => version);
    await service.awaitLive(numberOf('last'));
  });
  const list = async <Element = Product>(path: string) =>
    (await service.api().get(path)).json<List<Element>>();
  const linesOf = (records: readonly unknown[]) => records.map((it) => `${JSON.stringify(it)}\n`).join('');
  const lines = (path = '/products') =>
    service.api().get(path, { headers: { accept: 'application/x-ndjson', 'accept-encoding': 'identity' } });

  const numberOf = (which: 'first' | 'middle' | 'last') =>
    numbers[['first', 'middle', 'last'].indexOf(which)] as number;

  it('is of that format', async () => {
    for (const its of [keys, companyKeys])
      for (const found of await readKeptVersions(service.redis(), its)) expect(found.format).to.equal(format);
  });

  it('is served: pages of every size, single records, searches, drugs, lines, changes', async () => {
    expect((await list('/products')).data).to.deep.equal(last.slice(0, 200));
    expect((await list('/products?page=3')).data).to.deep.equal(last.slice(400));
    expect((await list('/products?page=5&per-page=7')).data).to.deep.equal(last.slice(28, 35));
    expect((await service.api().get('/products/9')).json<{ data: Product }>().data).to.deep.equal(last[7]);
    expect((await service.api().get('/products/200')).status).to.equal(404);
    expect((await list('/products?name=surup+cigdem')).data).to.deep.equal([last[7]]);
    expect((await list(`/products?barcode=${last[20]?.barcodes[0]?.barcode}`)).data).to.deep.equal([
      last[20],
    ]);
    const first = `/products?barcode=${last[20]?.barcodes[0]?.barcode}`;
    expect((await list(`${first}&name=drug+${last[20]?.product.id}`)).data).to.deep.equal([last[20]]);
    expect((await list(`${first}&name=e`)).data).to.deep.equal([]);
    expect((await list('/drugs?per-page=1'))._meta.totalCount).to.equal(last.length);
    expect((await list('/companies')).data).to.deep.equal(companies(3));
    const answer = await lines();
    expect(answer.text).to.equal(linesOf(last));
    const digests = format === 1 ? /^list=:[A-Za-z0-9+/]{43}=:$/ : /^list=:\S{44}:, set=:\S{44}:$/;
    expect(answer.headers.get('medref-digest')).to.match(digests);
    const changed = await list<{ id: number; change: string }>(
      `/products/changes?since=${numberOf('first')}`,
    );
    expect(changed.data.map(({ id, change }) => `${id} ${change}`)).to.deep.equal([
      ...['7 removed', '9 changed', '200 removed', '431 added'],
    ]);
    expect((await list(`/products?version=${numberOf('middle')}`)).data).to.deep.equal(middle.slice(0, 200));
    const versions = await list<{ version: number; digest: { set: unknown } }>('/products/versions');
    expect(versions.data.map(({ version }) => version)).to.deep.equal(numbers.toReversed());
    for (const { digest } of versions.data) expect(digest.set === null).to.equal(format === 1);
    expect(service.api().damage).to.deep.equal([]);
  });

  it('is searched by drug like any other: alone, with a name, with a barcode, page by page', async () => {
    const at = (index: number) => last[index] as Product;
    const of = (it: Product) => `/products?drug=${it.drug.id}`;
    expect((await list(of(at(20)))).data).to.deep.equal([at(20)]);
    expect((await list(`${of(at(7))}&name=SURUP`)).data).to.deep.equal([at(7)]);
    expect((await list(`${of(at(7))}&name=drug`)).data).to.deep.equal([]);
    const barcode = (it: Product) => it.barcodes[0]?.barcode;
    expect((await list(`${of(at(20))}&barcode=${barcode(at(20))}`)).data).to.deep.equal([at(20)]);
    expect((await list(`${of(at(20))}&barcode=${barcode(at(21))}`)).data).to.deep.equal([]);
    const nothing = await list('/products?drug=999999');
    expect([nothing.data, nothing._meta.totalCount]).to.deep.equal([[], 0]);
    expect((await list(`${of(at(20))}&page=2`)).data).to.deep.equal([]);
    const pinned = middle.find(({ product }) => product.id === 200) as Product;
    expect((await list(`/products?drug=200&version=${numberOf('middle')}`)).data).to.deep.equal([pinned]);
    expect((await list('/products?drug=200')).data).to.deep.equal([]);
    expect((await list('/products?ids=9,7,10')).data).to.deep.equal([at(7), at(8)]);
  });

  it('is searched by drug in the order of the list, and with a name in that of the names', async () => {
    const drug = { id: 7_000, name: 'ONE' };
    const names = ['Çelik', 'ÇELİK 2', 'çelik', 'beta', 'Çelik'];
    const changed = names.map((name, n) => {
      const it = last[2 * n] as Product;
      return { ...it, drug, product: { ...it.product, name } };
    });
    const { records, blocks } = keys.content(numberOf('last'));
    for (const record of changed) {
      const { id } = record.product;
      const text = JSON.stringify(record);
      await service.redis().hset(records, String(id), format === 1 ? text : storedRecord(id, text));
    }
    await service.redis().hdel(blocks, '0');
    const found = async (query: string) =>
      (await list(`/products?drug=7000${query}`)).data.map(({ product }) =>
        changed.findIndex((it) => it.product.id === product.id),
      );
    expect(await found('')).to.deep.equal([0, 1, 2, 3, 4]);
    expect(await found('&per-page=2&page=2')).to.deep.equal([2, 3]);
    expect(await found('&name=CELIK')).to.deep.equal([0, 2, 4, 1]);
    expect(await found('&name=CELIK&per-page=3&page=2')).to.deep.equal([1]);
    const barcode = changed[4]?.barcodes[0]?.barcode;
    expect(await found(`&name=CELIK&barcode=${barcode}`)).to.deep.equal([4]);
  });

  it('is 503 to a search by drug where a record and its block are damaged, and right once they are whole', async () => {
    const { records, blocks } = keys.content(numberOf('last'));
    const whole = (await service.redis().hgetBuffer(records, '9')) as Buffer;
    await service.redis().hdel(records, '9');
    await service.redis().hdel(blocks, '0');
    expect((await service.api().get('/products?drug=9')).status).to.equal(503);
    await service.redis().hset(records, '9', whole);
    expect((await list('/products?drug=9')).data).to.deep.equal([last[7]]);
  });

  it('is 503 to a search by drug where its records are gone, also where the process remembers that it finds none', async () => {
    const [none, beyond] = ['/products?drug=999999', `/products?drug=${last[20]?.drug.id}&page=2`];
    for (const path of [none, beyond]) expect((await list(path)).data, path).to.deep.equal([]);
    const { records, blocks } = keys.content(numberOf('last'));
    await service.redis().del(records, blocks);
    await sleep(2); // For so long it may be taken to be there.
    for (const path of [none, beyond]) expect((await service.api().get(path)).status, path).to.equal(503);
  });

  it('is found whole, or damaged where a bit is another one', async () => {
    expect(isDamaged(await verify(service.redis(), keys, productCollection))).to.equal(false);
    const { records } = keys.content(numberOf('last'));
    const record = (await service.redis().hget(records, '9')) as string;
    await service.redis().hset(records, '9', record.replace('ŞURUP', 'ŞURUB'));
    const { contents } = await verify(service.redis(), keys, productCollection);
    expect(contents.map(({ versions }) => versions.map(({ version }) => version))).to.deep.equal([
      [numberOf('last')],
    ]);
  });

  it('is found damaged where a fence of the search index is another one', async () => {
    const { fences } = keys.content(numberOf('last'));
    const [last] = (await service.redis().zpopmax(fences)) as [string];
    await service.redis().zadd(fences, 0, `${last}z`);
    const { contents } = await verify(service.redis(), keys, productCollection);
    expect(contents[0]?.damage.join()).to.match(/Fence \d+ of .* is not the first entry of its page/);
  });

  it('is found whole by its own fold, by which an index may have other entries than today', async () => {
    const { entries } = keys.content(numberOf('last'));
    const page = String((await service.redis().hlen(entries)) - 1);
    const place = format === 1 ? 0 : Number(page);
    const stored = (await service.redis().hgetBuffer(entries, page)) as Buffer;
    const its = openEntries(stored, place) as string[];
    its.push((its.pop() as string).replace('\0', 'z\0'));
    await service.redis().hset(entries, page, packEntries(its, place));
    expect(isDamaged(await verify(service.redis(), keys, productCollection))).to.equal(false);
  });

  it('is stored anew by an import of the same list, under a number of today, with nothing changed', async () => {
    const report = await service.importList(last, { force: false });
    const { outcome, added, changed, removed } = report;
    expect({ outcome, added, changed, removed }).to.deep.equal({
      ...{ outcome: 'published', added: 0, changed: 0, removed: 0 },
    });
    expect(report.version).to.be.above(20_260_101_000_000);
    await service.awaitLive(report.version as number);
    expect((await readLiveVersion(service.redis(), keys))?.format).to.equal(currentFormat);
    for (const since of [numberOf('last'), report.version])
      expect((await list(`/products/changes?since=${since}`))._meta.totalCount, `since ${since}`).to.equal(0);
    expect((await list(`/products/changes?since=${numberOf('first')}`))._meta.totalCount).to.equal(4);
    const answer = await lines();
    expect(answer.text).to.equal(linesOf(last));
    expect(answer.headers.get('content-length')).to.equal(String(Buffer.byteLength(answer.text)));
    expect(answer.headers.get('medref-digest')).to.match(/, set=:/);
    expect((await service.importList(last, { force: false })).outcome).to.equal('unchanged');
    expect(isDamaged(await verify(service.redis(), keys, productCollection))).to.equal(false);
  });

  it('is compared record by record where another list is derived of the same one now', async () => {
    const drugKeys = keys.derived('drugs').content(numberOf('last'));
    const older = JSON.stringify({ drug: { id: 9, name: 'As it was derived' } });
    const stored = format === 1 ? older : storedRecord(9, older);
    await service.redis().hset(drugKeys.records, '9', stored);
    await service.redis().del(drugKeys.blocks);
    const ids = await readOrder(service.redis(), drugKeys.order);
    const found = (await service.redis().hmgetBuffer(drugKeys.records, ...ids)) as Buffer[];
    const texts = found.map((record, n) => formatOf({ format }).openRecord(record, ids[n] as string));
    const checksum = createHash('sha256')
      .update(`${texts.join('\n')}\n`)
      .digest('hex');
    const { document: _document, ...live } = (await readLiveVersion(service.redis(), keys)) as LiveVersion;
    const { drugs } = live.derived as { drugs: ContentFacts };
    const text = documentOf({ ...live, derived: { drugs: { ...drugs, checksum, blocks: 0 } } });
    await service.redis().set(keys.live, text);
    await service.redis().hset(keys.versionDocuments, String(numberOf('last')), text);

    const { version, warnings } = await service.importList(last, { force: false });
    expect(warnings).to.deep.equal([]);
    await service.awaitLive(version as number);
    const changed = await list<{ id: number; change: string }>(`/drugs/changes?since=${numberOf('last')}`);
    expect(changed.data.map(({ id, change }) => `${id} ${change}`)).to.deep.equal(['9 changed']);
    expect((await list(`/products/changes?since=${numberOf('last')}`)).data).to.deep.equal([]);
  });

  it('tells the digests of its versions once it was repaired, and has another ETag where it did not', async () => {
    const path = '/products/versions';
    const first = await service.api().get(path);
    await service.redis().hset(keys.content(numberOf('first')).blocks, '0', 'x');
    const result = await repair(productCollection, { redis: service.redis(), keyPrefix: 'medref' });
    expect(JSON.stringify('left' in result && isDamaged(result.left))).to.equal('false');
    const held = { 'if-none-match': first.headers.get('etag') as string };
    const again = await service.api().get(path, { headers: held });
    expect(again.status).to.equal(format === 1 ? 200 : 304);
    if (format === 1) expect(again.text).not.to.equal(first.text);
  });

  it('is stored anew also where upstream would say that nothing has changed', async () => {
    const upstream = await startUpstreamServer((response, request) => {
      if (request.headers['if-none-match']) return void response.writeHead(304).end();
      response.setHeader('content-type', 'application/json').end(JSON.stringify(last));
    });
    try {
      const source = { url: upstream.url(), collection: productCollection };
      const validators = storedValidators({ etag: '"last"', lastModified: null }, source);
      await service.redis().set(keys.validators, validators as string);
      const importIt = () => importFrom(upstream.url(), productCollection, { redisUrl: service.redisUrl() });
      expect((await importIt()).outcome).to.equal('published');
      await service.redis().set(keys.validators, validators as string);
      const again = await importIt();
      expect({ outcome: again.outcome, read: again.read }).to.deep.equal({ outcome: 'unchanged', read: 0 });
    } finally {
      await upstream.close();
    }
  });

  it('is told apart record by record from a list in the format of today', async () => {
    const report = await service.importList(middle);
    const { added, changed, removed } = report;
    expect({ added, changed, removed }).to.deep.equal({ added: 1, changed: 0, removed: 0 });
    await service.awaitLive(report.version as number);
    const sinceFirst = await list<{ id: number }>(`/products/changes?since=${numberOf('first')}`);
    expect(sinceFirst.data.map(({ id }) => id)).to.deep.equal([7, 9, 431]);
  });

  it('can be rolled back to, in its own format, before and after an import of this release', async () => {
    const early = await service.goBackTo(numberOf('middle'));
    expect((await list('/products')).data).to.deep.equal(middle.slice(0, 200));
    const upgraded = await service.publish(last);
    expect((await list(`/products/changes?since=${early}`))._meta.totalCount).to.equal(1);
    const late = await service.goBackTo(numberOf('middle'));
    expect((await readLiveVersion(service.redis(), keys))?.format).to.equal(format);
    expect((await lines()).text).to.equal(linesOf(middle));
    expect((await list(`/products/changes?since=${upgraded}`))._meta.totalCount).to.equal(1);
    expect((await list('/products/200')).data).to.deep.equal(
      middle.find(({ product }) => product.id === 200),
    );
    expect((await service.importList(middle)).outcome).to.equal('published');
    expect(late).to.be.above(upgraded);
  });

  it('is not read where it is of a format to come: that is told, and is no empty list', async () => {
    const version = await readLiveVersion(service.redis(), keys);
    const { document: _document, ...its } = version as NonNullable<typeof version>;
    await service.redis().set(keys.live, documentOf({ ...its, format: currentFormat + 1 }));
    const deadline = Date.now() + 1_000;
    let answer = await service.api().get('/products');
    while (answer.status === 200 && Date.now() < deadline) answer = await service.api().get('/products');
    expect(answer.status).to.equal(503);
    expect(answer.json<{ data: { message: string } }>().data.message).to.include('newer release');
    expect(service.api().damage.join()).to.include(`the format ${currentFormat + 1}`);
    expect((await service.api().get('/products?page=9')).status).to.equal(503);
  });
}
