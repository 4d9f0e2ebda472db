// Tests that decoders of different makers can read a page whose gzip was assembled from blocks.

import { execFile, execFileSync, spawnSync } from 'node:child_process';
import { createServer, get } from 'node:http';
import type { AddressInfo } from 'node:net';
import { promisify } from 'node:util';
import { gunzipSync } from 'node:zlib';
import { expect } from 'chai';
import { products as productCollection } from '../../../shared/collections/products.ts';
import { useApi } from '../../support/api.ts';
import { useBrowser } from '../../support/browser.ts';
import { importRecords } from '../../support/importing.ts';
import { products } from '../../support/records.ts';
import { useRedis } from '../../support/redis-server.ts';

const run = promisify(execFile);
/** Checks if a client exists on this machine; its test is left out if not. zlib, undici and gzip exist everywhere. */
const isInstalled = (program: string) => spawnSync(program, ['--version']).status === 0;

/** A page that requests the list in the browser, and writes the received ids into its title. */
const page = `<!doctype html><title>-</title><script type="module">
const answer = await (await fetch('/products?page=2')).json();
document.title = answer.data.map(({ product }) => product.id).join(' ');
</script>`;

describe('a page made from blocks', function () {
  this.timeout(60_000);
  const server = useRedis();
  const api = useApi(server);
  const browser = useBrowser();
  const expected = products(450).slice(200, 400);
  before(() => importRecords(products(450), productCollection, { redisUrl: server().url }));

  const path = '/products?page=2';
  const dataOf = (text: string) => (JSON.parse(text) as { data: unknown }).data;

  /** Returns the body exactly as it was sent. */
  async function bytes(): Promise<Buffer> {
    const headers = { authorization: `Bearer ${api().key}`, 'accept-encoding': 'gzip' };
    const chunks = await new Promise<Buffer[]>((resolve, reject) => {
      get(`${api().origin}${path}`, { headers, agent: false }, (response) => {
        expect(response.headers['content-encoding']).to.equal('gzip');
        const all: Buffer[] = [];
        response.on('data', (chunk) => all.push(chunk)).on('end', () => resolve(all));
      }).on('error', reject);
    });
    return Buffer.concat(chunks);
  }

  it('is read by zlib', async () => {
    expect(dataOf(gunzipSync(await bytes()).toString())).to.deep.equal(expected);
  });

  it('is read by undici, the client of fetch', async () => {
    const response = await api().get(path, { headers: { 'accept-encoding': 'gzip' } });
    expect(response.headers.get('content-encoding')).to.equal('gzip');
    expect(dataOf(response.text)).to.deep.equal(expected);
  });

  it('is read by gzip, the program', async () => {
    const text = execFileSync('gzip', ['-dc'], { input: await bytes(), maxBuffer: 1e8 });
    expect(dataOf(text.toString())).to.deep.equal(expected);
  });

  // A machine may lack curl and Python: medref needs neither to build or run.
  it('is read by curl', async function () {
    if (!isInstalled('curl')) this.skip(); // CONTRIBUTING.md lists it as optional.
    const key = `Authorization: Bearer ${api().key}`;
    const { stdout } = await run('curl', ['-sS', '--compressed', '-H', key, `${api().origin}${path}`]);
    expect(dataOf(stdout)).to.deep.equal(expected);
  });

  it('is read by Python', async function () {
    if (!isInstalled('python3')) this.skip(); // CONTRIBUTING.md lists it as optional.
    const program = 'import gzip,sys; sys.stdout.buffer.write(gzip.decompress(sys.stdin.buffer.read()))';
    const text = execFileSync('python3', ['-c', program], { input: await bytes(), maxBuffer: 1e8 });
    expect(dataOf(text.toString())).to.deep.equal(expected);
  });

  it('is read by a browser', async () => {
    const body = await bytes();
    const site = createServer((request, response) => {
      if (request.url === '/') response.setHeader('content-type', 'text/html').end(page);
      else
        response.writeHead(200, { 'content-encoding': 'gzip', 'content-type': 'application/json' }).end(body);
    });
    await new Promise<void>((resolve) => site.listen(0, '127.0.0.1', resolve));
    try {
      const { port } = site.address() as AddressInfo;
      const tab = await browser().newPage();
      await tab.goto(`http://127.0.0.1:${port}/`);
      await tab.waitForFunction("document.title !== '-'");
      expect(await tab.title()).to.equal(expected.map(({ product }) => product.id).join(' '));
    } finally {
      site.closeAllConnections();
      site.close();
    }
  });
});
