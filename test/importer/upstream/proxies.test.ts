// Tests the way to an upstream: through the proxies of the environment, and over TLS with a company's own certificates.

import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect } from 'chai';
import { createUpstream } from '../../../importer/upstream/upstream.ts';
import { medrefProcess, startMedref } from '../../support/medref.ts';
import { type HttpProxy, startHttpProxy } from '../../support/proxies.ts';
import { product } from '../../support/records.ts';
import { useRedis } from '../../support/redis-server.ts';
import {
  sending,
  startTwoSchemeServer,
  type TwoSchemeServer,
  whyNoTls,
} from '../../support/upstream-server.ts';

const suite = whyNoTls === null ? describe : describe.skip;
const variables = ['HTTPS_PROXY', 'HTTP_PROXY', 'NO_PROXY', 'NODE_TLS_REJECT_UNAUTHORIZED'] as const;

suite(`an upstream behind a proxy and TLS${whyNoTls ? ` (left out: ${whyNoTls})` : ''}`, () => {
  const redis = useRedis();
  const list = JSON.stringify([product(1)]);
  let upstream: TwoSchemeServer;
  let proxy: HttpProxy;
  let guarded: HttpProxy;
  let folder: string;
  const asBefore = new Map<string, string | undefined>();

  before(async () => {
    for (const name of variables) asBefore.set(name, process.env[name]);
    folder = await mkdtemp(join(tmpdir(), 'medref-test-proxies-'));
    upstream = await startTwoSchemeServer((response, request) => sending(list)(response, request, 1));
    proxy = await startHttpProxy();
    guarded = await startHttpProxy('me:pass-word');
  });
  after(async () => {
    await Promise.all([upstream?.close(), proxy?.close(), guarded?.close()]);
    await rm(folder, { recursive: true, force: true });
  });
  afterEach(() => {
    for (const [name, value] of asBefore) {
      if (value === undefined) delete process.env[name];
      else process.env[name] = value;
    }
  });

  async function read(scheme: 'http' | 'https', ca = upstream.certificate): Promise<string> {
    try {
      const client = createUpstream({ ca, limits: { attempts: 1 } });
      try {
        const document = await client.open(new URL(`${scheme}://127.0.0.1:${upstream.port}/list`));
        if ('notModified' in document) return '';
        const chunks: Uint8Array[] = [];
        for await (const chunk of document.body) chunks.push(chunk);
        return Buffer.concat(chunks).toString();
      } finally {
        await client.close();
      }
    } catch (error) {
      return (error as Error).message;
    }
  }

  it('is read through a tunnel for https, a plain proxy for http, and directly with NO_PROXY', async () => {
    Object.assign(process.env, { HTTPS_PROXY: proxy.url, HTTP_PROXY: proxy.url });
    const place = `127.0.0.1:${upstream.port}`;
    expect(await read('https')).to.equal(list);
    expect(await read('http')).to.equal(list);
    expect(proxy.asked).to.deep.equal([`CONNECT ${place}`, `GET http://${place}/list`]);
    process.env['NO_PROXY'] = '127.0.0.1';
    expect(await read('https')).to.equal(list);
    expect(proxy.asked).to.have.length(2);
  });

  it('is read through a proxy with credentials, which no message shows', async () => {
    Object.assign(process.env, { HTTPS_PROXY: guarded.url, HTTP_PROXY: guarded.url });
    expect(await read('https')).to.equal(list);
    expect(await read('http')).to.equal(list);
    const bare = guarded.url.replace('pass-word', 'other-word');
    Object.assign(process.env, { HTTPS_PROXY: bare, HTTP_PROXY: bare });
    for (const scheme of ['https', 'http'] as const) {
      const reason = await read(scheme);
      expect(reason).to.include('the proxy of HTTPS_PROXY or HTTP_PROXY refused');
      expect(reason).not.to.include('other-word');
    }
    process.env['HTTPS_PROXY'] = 'not a URL of pass-word';
    expect(await read('https')).to.match(/^HTTPS_PROXY or HTTP_PROXY is not the URL of a proxy, /);
  });

  it('is refused with an untrusted certificate, whatever NODE_TLS_REJECT_UNAUTHORIZED says', async () => {
    process.env['NODE_TLS_REJECT_UNAUTHORIZED'] = '0';
    const refused = /has an invalid certificate/;
    const other = (await startTwoSchemeServer(() => {})) as TwoSchemeServer;
    await other.close();
    expect(await read('https', other.certificate)).to.match(refused);
    process.env['HTTPS_PROXY'] = proxy.url;
    expect(await read('https', other.certificate)).to.match(refused);
  });

  it('is checked as strictly as the webhook and Redis', async () => {
    const asked: string[] = [];
    const reported = (await startTwoSchemeServer(
      (_, { url }) => void asked.push(url ?? ''),
    )) as TwoSchemeServer;
    const environment = { NODE_TLS_REJECT_UNAUTHORIZED: '0', PRODUCTS_URL: 'file:///nothing.json' };
    const at = `127.0.0.1:${reported.port}`;
    const webhook = startMedref(['import'], {
      ...{ ...environment, REDIS_URL: redis().url, WEBHOOK_URL: `https://${at}/hook` },
    });
    try {
      let log = '';
      for await (const chunk of webhook.process.stderr ?? []) {
        log += chunk;
        if (log.includes('could not be asked')) break;
      }
      expect(log).to.include('DEPTH_ZERO_SELF_SIGNED_CERT');
      const { code, stderr } = await medrefProcess(['status'], {
        ...environment,
        REDIS_URL: `rediss://${at}`,
      });
      expect(code).to.equal(1);
      // Newer versions of Node add a sentence of advice.
      expect(stderr)
        .to.match(new RegExp(`^Redis at ${at} cannot be used: self-signed certificate[.;]`))
        .and.to.match(/\. Start it, or set REDIS_URL\.\n$/);
      expect(asked).to.deep.equal([]);
    } finally {
      webhook.process.kill('SIGKILL');
      await reported.close();
    }
  });

  it('is imported with proxy and NODE_EXTRA_CA_CERTS from the environment', async () => {
    const file = join(folder, 'ca.pem');
    await writeFile(file, upstream.certificate);
    const { code, stderr } = await medrefProcess(['import'], {
      ...{ REDIS_URL: redis().url, PRODUCTS_URL: `https://127.0.0.1:${upstream.port}/of-process` },
      ...{ HTTPS_PROXY: guarded.url, NODE_EXTRA_CA_CERTS: file },
    });
    expect([code, stderr]).to.deep.equal([0, '']);
    expect(guarded.asked.at(-1)).to.equal(`CONNECT 127.0.0.1:${upstream.port}`);
  });
});
