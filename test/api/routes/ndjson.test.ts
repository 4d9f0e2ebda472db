// Tests a list with `Accept: application/x-ndjson`: complete, of one version, as fast as the client reads, or reset.

import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { get as httpGet, type IncomingMessage } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import { expect } from 'chai';
import type { Product } from '../../../shared/collections/products.ts';
import { products as productCollection } from '../../../shared/collections/products.ts';
import { connectForWriting, type Redis } from '../../../shared/redis/connections.ts';
import { contentKeys } from '../../../shared/store/keys.ts';
import { useApi } from '../../support/api.ts';
import { importRecords } from '../../support/importing.ts';
import { keepKeySpace } from '../../support/key-space.ts';
import { productKeys } from '../../support/keys.ts';
import { product, products } from '../../support/records.ts';
import { useRedis } from '../../support/redis-server.ts';

const accept = 'application/x-ndjson';
const linesOf = (records: readonly unknown[]) => records.map((it) => `${JSON.stringify(it)}\n`).join('');

describe('the NDJSON export of a collection', () => {
  const server = useRedis();
  const api = useApi(server);
  let redis: Redis;
  before(async () => {
    redis = await connectForWriting(server().url);
  });
  after(() => redis.disconnect());

  async function publish(records: readonly Product[]): Promise<number> {
    const report = await importRecords(records, productCollection, { redisUrl: server().url, force: true });
    expect(report.outcome, report.reason ?? '').to.equal('published');
    const number = String(report.version);
    while ((await api().get('/products?per-page=1')).headers.get('medref-version') !== number)
      await sleep(20);
    return report.version as number;
  }
  const lines = (path: string, headers: Record<string, string> = {}) =>
    api().get(path, { headers: { accept, ...headers } });

  /** Returns products that do not fit into the buffers between a server and a client that reads nothing, with or without gzip. */
  const long = (count: number) =>
    Array.from({ length: count }, (_, i) =>
      product(i + 1, { drugform: { id: 1, name: randomBytes(1_500).toString('base64') } }),
    );

  /** Returns the response before its body is read. */
  async function open(path: string, headers: Record<string, string> = {}): Promise<IncomingMessage> {
    const all = { accept, authorization: `Bearer ${api().key}`, ...headers };
    const [response] = await once(httpGet(`${api().origin}${path}`, { headers: all }), 'response');
    return response as IncomingMessage;
  }

  it('has every record, one per line, in list order, with gzip and without', async () => {
    const list = products(1_013);
    const version = await publish(list);
    for (const encoding of ['gzip', 'identity']) {
      const response = await lines('/products', { 'accept-encoding': encoding });
      expect(response.status).to.equal(200);
      expect(response.text === linesOf(list), encoding).to.equal(true);
      expect(response.headers.get('content-encoding')).to.equal(encoding === 'gzip' ? 'gzip' : null);
      expect(response.headers.get('content-type')).to.equal(accept);
      expect(response.headers.get('medref-version')).to.equal(String(version));
    }
    expect((await lines('/drugs')).text).to.equal(linesOf(list.map(({ drug }) => ({ drug }))));
  });

  it('is sent only to clients that prefer it to JSON', async () => {
    await publish([product(1)]);
    const typeFor = async (wanted: string) =>
      (await api().get('/products', { headers: { accept: wanted } })).headers.get('content-type');
    for (const wanted of [
      accept,
      'APPLICATION/X-NDJSON',
      `${accept}, application/json;q=0.5`,
      `${accept};charset=utf-8`,
      `${accept}; charset="utf-8"; q=0.9, application/json;q=0.5`,
      `application/json;q=0.4, ${accept};charset=utf-8;q=0.5, */*;q=0.1`,
    ])
      expect(await typeFor(wanted), wanted).to.equal(accept);
    for (const wanted of [
      '*/*',
      'application/json',
      `${accept};q=0.5, application/json`,
      `${accept};charset=utf-8;q=0.5, application/json`,
      `${accept};charset=utf-8;q=0`,
      `${accept}2;charset=utf-8`,
      'text/html',
      ',;',
    ])
      expect(await typeFor(wanted), wanted).to.equal('application/json');
  });

  it('accepts only version, which pins it', async () => {
    const first = await publish(products(3));
    await publish(products(4));
    expect((await lines(`/products?version=${first}`)).text).to.equal(linesOf(products(3)));
    for (const parameter of ['page=1', 'per-page=10', 'name=a', 'barcode=123456789012', 'x=1']) {
      const response = await lines(`/products?${parameter}`);
      expect(response.status, parameter).to.equal(400);
      expect(response.text).to.include(parameter.split('=')[0] as string);
    }
    expect((await lines('/products?version=999')).status).to.equal(410);
  });

  it('has its own entity tag, and 304', async () => {
    await publish(products(5));
    const { headers } = await lines('/products');
    const etag = headers.get('etag') as string;
    expect((await api().get('/products')).headers.get('etag')).not.to.equal(etag);
    const again = await lines('/products', { 'if-none-match': etag });
    expect([again.status, again.text]).to.deep.equal([304, '']);
    const head = await api().get('/products', { method: 'HEAD', headers: { accept } });
    expect([head.status, head.text, head.headers.get('etag')]).to.deep.equal([200, '', etag]);
  });

  describe('if larger than all buffers', () => {
    let list: readonly Product[];
    let version: number;
    before(async () => {
      list = long(6_000);
      version = await publish(list);
    });

    it('reads from Redis only as fast as the client', async () => {
      const response = await open('/products');
      response.pause();
      const commands = async () =>
        Number(/cmdstat_hmget:calls=(\d+)/.exec(await redis.info('commandstats'))?.[1]);
      let before = -1;
      for (let now = await commands(); now !== before; now = await commands()) {
        before = now;
        await sleep(300);
      }
      await sleep(500);
      expect(await commands(), 'reads of Redis while the client reads nothing').to.equal(before);
      let text = '';
      for await (const chunk of response.setEncoding('utf8')) text += chunk;
      expect(text === linesOf(list)).to.equal(true);
      expect(await commands()).to.be.above(before);
    });

    it('is reset, and never looks complete, if its version expires meanwhile', async () => {
      const restore = await keepKeySpace(redis);
      for (const encoding of ['identity', 'gzip']) {
        await restore();
        while ((await api().get('/products')).status !== 200) await sleep(20);
        const response = await open('/products', { 'accept-encoding': encoding });
        expect(response.statusCode).to.equal(200);
        response.pause();
        await sleep(100);
        await redis.unlink(...contentKeys(productKeys, version));
        const ended = (async () => {
          for await (const _chunk of response);
        })();
        const error = await ended.then(
          () => null,
          (it: NodeJS.ErrnoException) => it,
        );
        expect(error?.code, encoding).to.equal('ECONNRESET');
        expect((await lines('/products')).status, 'if the version is gone before the stream begins').to.equal(
          503,
        );
      }
      await publish(products(7));
      expect((await lines('/products')).text).to.equal(linesOf(products(7)));
    });
  });

  for (const [what, name] of [
    ['longer', 'of a name that is longer'],
    ['shorter', 'X'],
  ] as const) {
    it(`is cut if the stored data is ${what} than before, within the announced length`, async () => {
      const version = await publish(products(2));
      const other = await publish(products(2).map((it) => ({ ...it, drugform: { id: 1, name } })));
      const stored = [version, other].map((it) => productKeys.content(it).blocks);
      await redis.copy(...(stored.reverse() as [string, string]), 'REPLACE');
      const path = `/products?version=${version}`;
      const { length } = linesOf(products(2));
      for (const encoding of ['identity', 'gzip']) {
        const reported = api().damage.length;
        const fields = `Host: a\r\nAuthorization: Bearer ${api().key}\r\nAccept: ${accept}\r\nAccept-Encoding: ${encoding}`;
        const bytes = await api()
          .raw(`GET ${path} HTTP/1.1\r\n${fields}\r\n\r\n`)
          .catch(() => '');
        expect((bytes.split('\r\n\r\n')[1] ?? '').length, encoding).to.be.at.most(length);
        expect(api().damage[reported]).to.match(/^The records of version \d+ have another length/);
        const failure = await lines(path, { 'accept-encoding': encoding }).catch((error: Error) => error);
        expect(failure, encoding).to.be.an('error');
      }
    });
  }
});
