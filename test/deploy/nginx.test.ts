// Tests deploy/nginx/medref.conf: a real nginx with exactly this file, over TLS, in front of a real API.

import { readFileSync } from 'node:fs';
import type { IncomingMessage } from 'node:http';
import { BlockList } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { gunzipSync } from 'node:zlib';
import { expect } from 'chai';
import type { CompletedRequest } from '../../api/http.ts';
import { type Product, products as productCollection } from '../../shared/collections/products.ts';
import { connectForWriting } from '../../shared/redis/connections.ts';
import { startApi, type TestApi } from '../support/api.ts';
import { startDashboard } from '../support/dashboard.ts';
import { importRecords } from '../support/importing.ts';
import { productKeys } from '../support/keys.ts';
import { freePort, publicName, startProxy, type TestProxy, whyNoNginx } from '../support/nginx.ts';
import { products } from '../support/records.ts';
import { useRedis } from '../support/redis-server.ts';
import { send, sendWithoutKey } from '../support/wire.ts';

const configuration = new URL('../../deploy/nginx/medref.conf', import.meta.url);

interface Page {
  readonly data: readonly { product: { id: number } }[];
  readonly _links: Readonly<Record<string, { readonly href: string }>>;
}

const suite = whyNoNginx === null ? describe : describe.skip;

suite(`nginx with deploy/nginx/medref.conf${whyNoNginx ? ` (left out: ${whyNoNginx})` : ''}`, function () {
  this.timeout(30_000);
  const server = useRedis();
  let publicAddress: string;
  let api: TestApi;
  let proxy: TestProxy;

  before(async () => {
    const port = await freePort();
    publicAddress = `https://${publicName}:${port}`;
    api = await startApi({ redisUrl: server().url, baseUrl: publicAddress });
    await publish(products(450));
    proxy = await startProxy({ port, apiPort: api.port });
  });
  after(async () => {
    await proxy?.stop();
    await api?.stop();
  });

  async function publish(records: readonly Product[]): Promise<number> {
    const { version } = await importRecords(records, productCollection, {
      ...{ redisUrl: server().url, force: true },
    });
    while ((await api.get('/products?per-page=1')).headers.get('medref-version') !== String(version))
      await sleep(20);
    return version as number;
  }

  const withKey = () => ({ authorization: `Bearer ${api.key}` });
  async function ask(path: string, headers: Record<string, string> = withKey(), method = 'GET') {
    const response = await proxy.open(path, { method, headers });
    return { status: response.statusCode ?? 0, headers: response.headers, body: await bodyOf(response) };
  }

  it('serves links with the public address, whatever Host a client sends', async () => {
    const ids: number[] = [];
    let next: string | undefined = '/products?per-page=200';
    while (next) {
      const { status, body } = await ask(next, { ...withKey(), host: 'elsewhere.example' });
      expect(status).to.equal(200);
      const { data, _links } = JSON.parse(body.toString()) as Page;
      ids.push(...data.map(({ product }) => product.id));
      for (const { href } of Object.values(_links)) {
        expect(href.startsWith(`${publicAddress}/products?`), href).to.equal(true);
      }
      next = _links['next']?.href.slice(publicAddress.length);
    }
    expect(ids).to.deep.equal(products(450).map(({ product }) => product.id));
  });

  it('passes on gzip from the API, and identity on request', async () => {
    for (const [path, asked, encoding] of [
      ['/products', 'gzip', 'gzip'],
      ['/products', 'identity', undefined],
      // This response is too short for the API to compress.
      ['/products/1', 'gzip', undefined],
    ] as const) {
      const headers = { ...withKey(), 'accept-encoding': asked };
      const own = await send(api, path, { headers });
      const passed = await ask(path, headers);
      expect(passed.body.equals(own.body), `${path} ${asked}`).to.equal(true);
      for (const name of ['content-type', 'content-encoding', 'content-length', 'vary', 'cache-control']) {
        expect(passed.headers[name], name).to.equal(own.headers[name]);
      }
      expect(passed.headers['content-encoding']).to.equal(encoding);
    }
  });

  it('passes on ETag, Last-Modified and Medref-Version, and 304 for them', async () => {
    for (const encoding of ['gzip', 'identity']) {
      const headers = { ...withKey(), 'accept-encoding': encoding };
      const own = await send(api, '/products?page=2', { headers });
      const first = await ask('/products?page=2', headers);
      for (const name of ['etag', 'last-modified', 'medref-version']) {
        expect(first.headers[name], name).to.be.a('string').and.to.equal(own.headers[name]);
      }
      const { etag = '', 'last-modified': date = '' } = first.headers;
      for (const condition of [{ 'if-none-match': etag }, { 'if-modified-since': date }]) {
        const again = await ask('/products?page=2', { ...headers, ...condition });
        expect({ status: again.status, etag: again.headers.etag }).to.deep.equal({ status: 304, etag });
        expect(again.body.length).to.equal(0);
      }
    }
  });

  it("passes on the API's errors unchanged", async () => {
    const asked: [number, string, Record<string, string>, string][] = [
      [400, '/products?page=x', withKey(), 'GET'],
      [401, '/products', {}, 'GET'],
      [401, '/products', { authorization: 'Bearer wrong' }, 'GET'],
      [404, '/products/999999', withKey(), 'GET'],
      [404, '/nothing', withKey(), 'GET'],
      [405, '/products', withKey(), 'DELETE'],
      [410, '/products?version=999', withKey(), 'GET'],
      [503, '/companies', withKey(), 'GET'],
    ];
    for (const [status, path, headers, method] of asked) {
      const own = await sendWithoutKey(api, path, { method, headers });
      const passed = await ask(path, headers, method);
      expect(passed.status, path).to.equal(status).and.to.equal(own.status);
      expect(passed.body.toString(), path).to.equal(own.body.toString());
      for (const name of ['content-type', 'www-authenticate', 'allow', 'retry-after']) {
        expect(passed.headers[name], `${path} ${name}`).to.equal(own.headers[name]);
      }
    }
  });

  it('streams an NDJSON export, and ends with an error if the API resets it', async () => {
    const lines = { ...withKey(), accept: 'application/x-ndjson' };
    const whole = await ask('/products', { ...lines, 'accept-encoding': 'gzip' });
    // nginx removes a header that it obeys. It sends lines on as they come, and does not buffer them.
    const own = await send(api, '/products', { headers: lines });
    expect(own.headers['x-accel-buffering']).to.equal('no');
    expect(whole.headers).not.to.have.property('x-accel-buffering');
    expect(gunzipSync(whole.body).toString()).to.equal(
      products(450)
        .map((it) => `${JSON.stringify(it)}\n`)
        .join(''),
    );

    // 45 MB: more than all socket buffers on the way can hold.
    const drugform = { id: 1, name: 'x'.repeat(9_000) };
    const version = await publish(products(5_000).map((it) => ({ ...it, drugform })));
    const response = await proxy.open('/products', { headers: lines });
    response.pause();
    await sleep(300);
    const redis = await connectForWriting(server().url);
    await redis.unlink(...Object.values(productKeys.content(version)));
    redis.disconnect();
    const error = await bodyOf(response).then(
      () => null,
      (it: NodeJS.ErrnoException) => it,
    );
    expect(error?.code).to.equal('ECONNRESET');
  });

  describe('with HTTP/2, before an API that trusts it', () => {
    const answered: (string | null)[] = [];
    let trusting: TestApi;
    let front: TestProxy;
    before(async () => {
      await publish(products(12));
      const trustedProxies = new BlockList();
      trustedProxies.addAddress('127.0.0.1');
      const onResponse = ({ address }: CompletedRequest) => void answered.push(address);
      trusting = await startApi({ redisUrl: server().url, trustedProxies, onResponse });
      front = await startProxy({ port: await freePort(), apiPort: trusting.port });
    });
    after(async () => {
      await front?.stop();
      await trusting?.stop();
    });

    it("serves links with the client's address and requires TLS, whatever a client sends", async () => {
      const spoofed = {
        ...{
          'x-forwarded-for': '192.0.2.9',
          'x-forwarded-host': 'evil.example',
          'x-forwarded-proto': 'http',
        },
        ...{ forwarded: 'for=192.0.2.9;host=evil.example', authorization: `Bearer ${trusting.key}` },
      };
      const [response] = await front.openAll(['/products?per-page=1'], spoofed);
      expect(response?.headers[':status']).to.equal(200);
      expect(response?.headers['strict-transport-security']).to.equal('max-age=31536000');
      const { _links } = JSON.parse(response?.text ?? '') as Page;
      expect(_links['self']?.href).to.equal(`https://${publicName}/products?page=1&per-page=1`);
      expect(answered).to.deep.equal(['127.0.0.1']);
    });

    it('reuses one connection, and lets a client wait for a publication', async () => {
      const headers = { authorization: `Bearer ${trusting.key}` };
      const [first] = await front.openAll(['/products'], headers);
      const version = first?.headers['medref-version'];
      const met = trusting.connections();
      const paths = Array.from({ length: 10 }, (_, i) => `/products/${i + 1}`);
      const responses = await front.openAll([...paths, `/products/changes?since=${version}&wait=1`], headers);
      expect(responses.map((it) => it.headers[':status'])).to.deep.equal(Array(11).fill(200));
      expect(trusting.connections() - met).to.be.at.most(1);
      const [, held = ''] = /proxy_read_timeout (\d+)s;/.exec(readFileSync(configuration, 'utf8')) ?? [];
      expect(Number(held), 'longer than the longest wait').to.be.above(60);
    });
  });

  it('does not expose the admin listener', async () => {
    const admin = await startDashboard({ redisUrl: server().url });
    try {
      const { port } = admin;
      expect((await fetch(`http://127.0.0.1:${port}/metrics`)).status, 'the listener itself').to.equal(200);
      for (const path of ['/metrics', '/../metrics', '//metrics', '/admin/metrics']) {
        for (const headers of [{}, withKey(), { host: `127.0.0.1:${port}` }]) {
          const { status, body } = await ask(path, headers);
          expect(status, path).to.be.oneOf([400, 404]);
          expect(body.toString(), path).not.to.include('process_cpu');
        }
      }
    } finally {
      await admin.stop();
    }
    const text = readFileSync(configuration, 'utf8');
    const ports = [...text.matchAll(/^ *(?:# )?server [\d.]+:(\d+) fail_timeout=1s;/gm)].map(
      ([, port]) => port,
    );
    expect(ports).to.deep.equal(['3000', '3000']);
    expect(text.match(/proxy_pass [^;]+/g)).to.deep.equal(['proxy_pass http://medref']);
  });

  it('responds with 503 in the usual shape if no API process is up', async () => {
    const lonely = await startProxy({ port: await freePort(), apiPort: await freePort() });
    try {
      const response = await lonely.open('/products', { headers: withKey() });
      expect(response.statusCode).to.equal(503);
      expect(response.headers).to.include({ 'content-type': 'application/json', 'retry-after': '1' });
      const { success, data } = JSON.parse((await bodyOf(response)).toString());
      expect(success).to.equal(false);
      expect(data).to.include({ name: 'Service Unavailable', code: 0, status: 503 });
      expect(Object.keys(data)).to.deep.equal(['name', 'message', 'code', 'status']);
    } finally {
      await lonely.stop();
    }
  });
});

async function bodyOf(response: IncomingMessage): Promise<Buffer> {
  const chunks: Buffer[] = [];
  for await (const chunk of response) chunks.push(chunk as Buffer);
  return Buffer.concat(chunks);
}
