import { gunzipSync } from 'node:zlib';
import { expect } from 'chai';
import { useApi } from '../../support/api.ts';
import { openApi } from '../../support/openapi.ts';
import { useRedis } from '../../support/redis-server.ts';
import { sendWithoutKey } from '../../support/wire.ts';

describe('GET /openapi.json', () => {
  const api = useApi(useRedis());
  const ask = (headers: Record<string, string> = {}, method = 'GET') =>
    sendWithoutKey(api(), '/openapi.json', { headers, method });

  it('returns the document, without a key and before anything is published', async () => {
    const { status, headers, body } = await ask();
    expect(status).to.equal(200);
    expect(headers['content-type']).to.equal('application/json');
    const { externalDocs, ...its } = JSON.parse(body.toString());
    const { externalDocs: described, ...others } = openApi;
    expect(its).to.deep.equal(others);
    expect(externalDocs).to.deep.equal({ ...described, url: externalDocs.url });
    expect(externalDocs.url).to.match(/^https?:\/\/.*\/docs$/);
    expect((await api().get('/openapi.json')).status).to.equal(200);
  });

  it('is revalidated each time, with 304 for clients that have it', async () => {
    const { headers } = await ask();
    expect(headers['cache-control']).to.equal('no-cache');
    for (const tags of [headers.etag as string, `"x", ${headers.etag}`, '*']) {
      const again = await ask({ 'if-none-match': tags });
      expect([again.status, again.body.length, again.headers.etag], tags).to.deep.equal([
        304,
        0,
        headers.etag,
      ]);
      expect(again.headers['cache-control']).to.equal('no-cache');
    }
    expect((await ask({ 'if-none-match': '"x"' })).status).to.equal(200);
    expect((await ask({ 'if-modified-since': new Date().toUTCString() })).status).to.equal(200);
  });

  it('is compressed for clients that accept it, with Vary', async () => {
    const plain = await ask();
    const compressed = await ask({ 'accept-encoding': 'gzip' });
    expect(compressed.headers['content-encoding']).to.equal('gzip');
    expect(gunzipSync(compressed.body)).to.deep.equal(plain.body);
    expect(compressed.body.length).to.be.below(plain.body.length / 4);
    expect(plain.headers).not.to.have.property('content-encoding');
    for (const { headers } of [plain, compressed]) expect(headers.vary).to.equal('Accept-Encoding');
    expect(compressed.headers.etag).to.equal(plain.headers.etag);
  });

  it('supports HEAD, and returns 405 for other methods', async () => {
    const head = await ask({}, 'HEAD');
    expect([head.status, head.body.length]).to.deep.equal([200, 0]);
    expect(head.headers['content-length']).to.equal(String((await ask()).body.length));
    const posted = await ask({}, 'POST');
    expect([posted.status, posted.headers.allow]).to.deep.equal([405, 'GET, HEAD']);
  });
});
