import { createHash } from 'node:crypto';
import { expect } from 'chai';
import { retainVersions } from '../../../importer/publish.ts';
import { companies as companyCollection } from '../../../shared/collections/companies.ts';
import { productKeys as keys } from '../../support/keys.ts';
import { companies, product, products } from '../../support/records.ts';
import { useService } from '../../support/service.ts';
import { send } from '../../support/wire.ts';

interface KeptVersion {
  readonly version: number;
  readonly publishedAt: string;
  readonly totalCount: number;
  readonly live: boolean;
  readonly digest: { readonly list: string; readonly set: string };
}

interface List {
  readonly data: readonly KeptVersion[];
  readonly _meta: object;
  readonly _links: Readonly<Record<string, { readonly href: string }>>;
}

const sha256 = (text: string) => createHash('sha256').update(text).digest();

/** Returns both digests of records, computed from their definitions alone. */
function digestOf(records: readonly unknown[]): { list: string; set: string } {
  const texts = records.map((it) => JSON.stringify(it));
  const sum = texts.reduce((so, text) => so + BigInt(`0x${sha256(text).toString('hex')}`), 0n) % 2n ** 256n;
  return {
    list: sha256(texts.map((text) => `${text}\n`).join('')).toString('base64'),
    set: Buffer.from(sum.toString(16).padStart(64, '0'), 'hex').toString('base64'),
  };
}

describe('GET /{collection}/versions', () => {
  const service = useService();
  const list = async (path = '/products/versions') => (await service.api().get(path)).json<List>();

  it('lists the kept versions, newest first, with their digests', async () => {
    const first = await service.publish(products(3));
    const second = await service.publish([...products(250), product(300)]);
    const third = await service.goBackTo(first);
    const { data, _meta, _links } = await list();
    expect(data.map(({ version, totalCount, live }) => [version, totalCount, live])).to.deep.equal([
      ...[
        [third, 3, true],
        [second, 251, false],
        [first, 3, false],
      ],
    ]);
    expect(data[1]?.digest).to.deep.equal(digestOf([...products(250), product(300)]));
    for (const n of [0, 2]) expect(data[n]?.digest).to.deep.equal(digestOf(products(3)));
    for (const { publishedAt } of data) expect(new Date(publishedAt).toISOString()).to.equal(publishedAt);
    expect(Object.keys(data[0] as object)).to.deep.equal([
      'version',
      'publishedAt',
      'totalCount',
      'live',
      'digest',
    ]);
    expect(_meta).to.deep.equal({ totalCount: 3, pageCount: 1, currentPage: 1, perPage: 200 });
    expect(Object.keys(_links)).to.deep.equal(['self', 'first', 'last']);
  });

  it('lists those of drugs, and separately those of companies', async () => {
    const version = await service.publish(products(7));
    const drugs = products(7).map(({ drug }) => ({ drug }));
    expect(
      (await list('/drugs/versions')).data.map((it) => [it.version, it.totalCount, it.digest]),
    ).to.deep.equal([[version, 7, digestOf(drugs)]]);
    expect((await service.api().get('/companies/versions')).status).to.equal(503);
    await service.publish(companies(2), { collection: companyCollection });
    expect((await list('/companies/versions')).data[0]?.digest).to.deep.equal(digestOf(companies(2)));
  });

  it('is paginated like any list', async () => {
    for (const count of [1, 2, 3]) await service.publish(products(count));
    const { data, _links, _meta } = await list('/products/versions?page=2&per-page=2');
    expect(data.map(({ totalCount }) => totalCount)).to.deep.equal([1]);
    expect(_meta).to.deep.equal({ totalCount: 3, pageCount: 2, currentPage: 2, perPage: 2 });
    expect(_links['prev']?.href).to.equal(`${service.api().origin}/products/versions?page=1&per-page=2`);
    expect((await list('/products/versions?page=9')).data).to.deep.equal([]);
    for (const query of ['page=0', 'version=1', 'since=1', 'per-page=x'])
      expect((await service.api().get(`/products/versions?${query}`)).status, query).to.equal(400);
  });

  it('requires a key, allows GET and HEAD, and has the digests of the live version', async () => {
    const version = await service.publish(products(3));
    const { list: itsList, set } = digestOf(products(3));
    const { headers } = await service.api().get('/products/versions');
    expect(headers.get('medref-digest')).to.equal(`list=:${itsList}:, set=:${set}:`);
    expect(headers.get('medref-version')).to.equal(String(version));
    expect((await send({ ...service.api(), key: 'x' }, '/products/versions')).status).to.equal(401);
    const posted = await send(service.api(), '/products/versions', { method: 'POST' });
    expect([posted.status, posted.headers.allow]).to.deep.equal([405, 'GET, HEAD']);
  });

  it('is 503, reported to operators, and no empty list, if Redis has lost the kept versions', async () => {
    await service.publish(products(1));
    await service.redis().del(keys.versionDocuments);
    expect((await service.api().get('/products/versions')).status).to.equal(503);
    expect(service.api().damage.join()).to.equal(`The Redis key ${keys.versionDocuments} is missing.`);
  });

  it('is 304 for clients that have it, until versions are deleted, which its date does not show', async () => {
    for (const count of [1, 2, 3]) await service.publish(products(count));
    const first = await send(service.api(), '/products/versions');
    const held = { 'if-none-match': first.headers.etag as string };
    const again = await send(service.api(), '/products/versions', { headers: held });
    expect([again.status, again.headers['medref-digest']]).to.deep.equal([
      304,
      first.headers['medref-digest'],
    ]);
    await service.redis().set(keys.lock, 'token');
    await retainVersions(service.redis(), { keys, token: 'token' }, 2);
    const byDate = { 'if-modified-since': first.headers['last-modified'] as string };
    for (const headers of [held, byDate])
      expect((await send(service.api(), '/products/versions', { headers })).status).to.equal(200);
  });
});

describe('the digests of a version', () => {
  const service = useService();
  const accept = 'application/x-ndjson';
  const listed = [...products(420), product(1_000, { published: false })];
  const identity = { accept, 'accept-encoding': 'identity' };

  it('come with NDJSON, changes and 304, cover all records, and match a pinned version', async () => {
    const first = await service.publish(products(5));
    await service.publish(listed);
    const digest = ({ list, set }: { list: string; set: string }) => `list=:${list}:, set=:${set}:`;
    for (const [path, records] of [
      ['/products', listed],
      ['/drugs', listed.map(({ drug }) => ({ drug }))],
      [`/products?version=${first}`, products(5)],
    ] as const) {
      const expected = digestOf(records);
      const lines = await send(service.api(), path, { headers: identity });
      expect(sha256(lines.body.toString()).toString('base64'), path).to.equal(expected.list);
      expect(lines.headers['medref-digest'], path).to.equal(digest(expected));
      const held = { ...identity, 'if-none-match': lines.headers.etag as string };
      const again = await send(service.api(), path, { headers: held });
      expect([again.status, again.headers['medref-digest']], path).to.deep.equal([304, digest(expected)]);
    }
    const changes = await send(service.api(), `/products/changes?since=${first}`);
    expect(changes.headers['medref-digest']).to.equal(digest(digestOf(listed)));
    const held = { 'if-none-match': changes.headers.etag as string };
    const again = await send(service.api(), `/products/changes?since=${first}`, { headers: held });
    expect([again.status, again.headers['medref-digest']]).to.deep.equal([304, digest(digestOf(listed))]);
    const compressed = await send(service.api(), '/products', {
      headers: { accept, 'accept-encoding': 'gzip' },
    });
    expect(compressed.headers['medref-digest']).to.equal(digest(digestOf(listed)));
    expect(compressed.headers).not.to.have.property('content-length');
    expect((await send(service.api(), '/products')).headers).not.to.have.property('medref-digest');
  });

  it('come with the length of an export, so that HTTP/1.0 clients recognize a truncated one', async () => {
    await service.publish(listed);
    const length = Buffer.byteLength(listed.map((it) => `${JSON.stringify(it)}\n`).join(''));
    const { headers } = await send(service.api(), '/products', { headers: identity });
    expect(headers['content-length']).to.equal(String(length));
    const head = await send(service.api(), '/products', { method: 'HEAD', headers: identity });
    expect([head.headers['content-length'], head.body.length]).to.deep.equal([String(length), 0]);
    const old = await service
      .api()
      .raw(
        `GET /products HTTP/1.0\r\nAuthorization: Bearer ${service.api().key}\r\nAccept: ${accept}\r\n\r\n`,
      );
    const [top = '', body = ''] = old.split('\r\n\r\n');
    expect(top.toLowerCase()).to.include(`content-length: ${length}`);
    expect(Buffer.byteLength(body)).to.equal(length);
  });
});
