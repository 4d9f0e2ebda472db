import { expect } from 'chai';
import { useApi } from '../../support/api.ts';
import { useRedis } from '../../support/redis-server.ts';
import { sendWithoutKey } from '../../support/wire.ts';

/** The Accept header that Firefox and Chromium send. */
const ofBrowser = 'text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8';

describe('the page of the API', () => {
  const api = useApi(useRedis());
  const ask = (path: string, headers: Record<string, string> = {}, method = 'GET') =>
    sendWithoutKey(api(), path, { headers, method });

  it('is at /docs without a key, with a strict content security policy', async () => {
    const { status, headers, body } = await ask('/docs');
    expect([status, headers['content-type']]).to.deep.equal([200, 'text/html; charset=utf-8']);
    expect(body.toString()).to.match(/^<!doctype html>/);
    const policy = String(headers['content-security-policy']).split('; ');
    expect(policy).to.have.members([
      ...[
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self'",
        "connect-src 'self'",
        'img-src data:',
      ],
      ...["base-uri 'none'", "form-action 'none'", "frame-ancestors 'none'"],
    ]);
    expect(headers['x-content-type-options']).to.equal('nosniff');
    expect(headers['referrer-policy']).to.equal('no-referrer');
    expect(headers['cross-origin-opener-policy']).to.equal('same-origin');
  });

  it('loads existing files, each with media type, ETag and gzip', async () => {
    const { body } = await ask('/docs');
    const files = [...body.toString().matchAll(/(?:src|href)="(docs\/[^"]+)"/g)].map(([, file]) => file);
    expect(files).to.have.length(4);
    for (const file of files) {
      const { status, headers, body: bytes } = await ask(`/${file}`);
      const type = file?.endsWith('.css') ? 'text/css' : 'text/javascript';
      expect([status, headers['content-type']], file).to.deep.equal([200, `${type}; charset=utf-8`]);
      expect(headers['cache-control'], file).to.equal('no-cache');
      expect(headers['x-content-type-options'], file).to.equal('nosniff');
      expect(bytes.length, file).to.be.above(50);
      const again = await ask(`/${file}`, { 'if-none-match': headers.etag as string });
      expect([again.status, again.body.length], file).to.deep.equal([304, 0]);
      const compressed = await ask(`/${file}`, { 'accept-encoding': 'gzip' });
      expect(compressed.headers['content-encoding'], file).to.equal('gzip');
    }
  });

  it('has no other files', async () => {
    for (const path of [
      '/docs/',
      '/docs/x',
      '/docs/constructor',
      '/docs/..%2Fpackage.json',
      '/docs/page.js/x',
    ])
      expect((await ask(path)).status, path).to.equal(404);
  });

  it('is the target of / for browsers', async () => {
    for (const method of ['GET', 'HEAD'])
      for (const accept of [ofBrowser, 'text/html', 'application/json;q=0.5, TEXT/HTML']) {
        const { status, headers } = await ask('/', { accept }, method);
        expect([status, headers.location], accept).to.deep.equal([302, 'docs']);
        expect([headers.vary, headers['cache-control']]).to.deep.equal(['Accept', 'no-cache']);
      }
  });

  it('is hidden from other clients at /, which get 404', async () => {
    for (const accept of [
      '*/*',
      'application/json',
      'application/json, text/html;q=0.5',
      'text/*',
      `text/html,${'x'.repeat(600)}`,
    ])
      expect((await ask('/', { accept })).status, accept).to.equal(404);
    const { status, body } = await ask('/');
    expect([status, JSON.parse(body.toString())]).to.deep.equal([
      404,
      {
        success: false,
        data: { name: 'Not Found', message: 'Nothing found at /.', code: 0, status: 404 },
      },
    ]);
    for (const method of ['POST', 'PUT', 'DELETE'])
      expect((await ask('/', { accept: ofBrowser }, method)).status, method).to.equal(404);
  });
});
