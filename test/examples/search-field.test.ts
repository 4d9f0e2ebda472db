import { readFileSync } from 'node:fs';
import { expect } from 'chai';
import type { Page } from 'playwright-core';
import { products as productCollection } from '../../shared/collections/products.ts';
import { startApi, type TestApi } from '../support/api.ts';
import { useBrowser, type Witness, watch } from '../support/browser.ts';
import { importRecords } from '../support/importing.ts';
import { product } from '../support/records.ts';
import { useRedis } from '../support/redis-server.ts';
import { startUpstreamServer, type UpstreamServer } from '../support/upstream-server.ts';

const read = (path: string) => readFileSync(new URL(`../../${path}`, import.meta.url), 'utf8');
const script = read('dist/client/client.js');

/** A barcode with the right check digit, and a barcode with a wrong one that no product has. */
const [barcode, unknown] = ['8690000000005', '8690000000019'];

describe('the page with a search field, from another origin', function () {
  this.timeout(60_000);
  const redis = useRedis();
  const browser = useBrowser();
  let api: TestApi;
  let site: UpstreamServer;
  let page: Page;
  let witness: Witness;
  before(async () => {
    // Sets the page up as a user does: with an address and a key, next to a copy of the client library.
    site = await startUpstreamServer((response, { url }) => {
      if (url === '/client.js') return void response.setHeader('content-type', 'text/javascript').end(script);
      const text = read('examples/search-field.html').replace('https://medref.example', api.origin);
      const key = url === '/refused' ? 'wrong' : api.key;
      response.setHeader('content-type', 'text/html').end(text.replace('medref_…', key));
    });
    api = await startApi({ redisUrl: redis().url, corsOrigins: [site.origin] });
    const records = [1, 5, 11].map((id) => product(id));
    await importRecords(records, productCollection, { redisUrl: redis().url });
    while ((await api.get('/products')).status !== 200);
    page = await browser().newPage();
    witness = await watch(page, site.origin);
    // The clock of the page stands still until a test advances it: keys come as fast as from a scanner, on any machine.
    await page.clock.install({ time: 0 });
    await page.clock.pauseAt(1_000);
  });
  after(async () => {
    await page.close();
    await api.stop();
    await site.close();
  });

  const open = async (path = '/') => {
    await page.goto(`${site.origin}${path}`);
    witness.requests.length = 0;
  };
  /** Waits until the page shows this text. */
  const expectSaid = (text: string) => page.getByRole('status').filter({ hasText: text }).waitFor();
  const type = async (text: string) => {
    await page.keyboard.type(text);
    await page.clock.runFor(150);
  };
  const shown = () => page.getByRole('option').allTextContents();
  const searches = () =>
    witness.requests.flatMap(
      (url) => decodeURIComponent(url).replaceAll('+', ' ').split('/products?')[1] ?? [],
    );

  it('finds products while a name is typed, with one search for fast typing', async () => {
    await open();
    await page.keyboard.type('drug 11');
    await page.clock.runFor(149);
    expect(searches()).to.deep.equal([]);
    await page.clock.runFor(1);
    await expectSaid('1 of 1');
    expect(await shown()).to.deep.equal([product(11).product.name]);
    expect(searches()).to.deep.equal(['words=drug 11&per-page=10']);
    await type('9');
    await expectSaid('No product has a name with drug 119.');
    expect(await shown()).to.deep.equal([]);
  });

  it('leaves words of one character out, unless there are no others', async () => {
    await open();
    await type('drug 5');
    await expectSaid('3 of 3');
    expect(searches().at(-1)).to.equal('words=drug&per-page=10');
    await page.getByRole('combobox').fill('');
    await type('d');
    await expectSaid('3 of 3');
    expect(searches().at(-1)).to.equal('name=d&per-page=10');
  });

  it('finds words of a name in any order', async () => {
    await open();
    await type('tablet drug 11');
    await expectSaid('1 of 1');
    expect(searches().at(-1)).to.equal('words=tablet drug 11&per-page=10');
  });

  it('is operated by keys: down, up, Escape and Enter', async () => {
    await open();
    await type('drug');
    await expectSaid('3 of 3');
    for (const key of ['ArrowUp', 'ArrowDown', 'ArrowDown', 'ArrowDown']) await page.keyboard.press(key);
    expect(await page.getByRole('option', { selected: true }).allTextContents()).to.deep.equal([
      product(11).product.name,
    ]);
    await page.keyboard.press('Enter');
    await expectSaid('11: DRUG 11');
    expect(await page.getByRole('combobox').inputValue()).to.equal(product(11).product.name);
    await type('drug');
    await expectSaid('3 of 3');
    await page.keyboard.press('Escape');
    expect(await shown()).to.deep.equal([]);
    const count = searches().length;
    await page.getByRole('combobox').fill('drug 11');
    await page.keyboard.press('Enter');
    await page.clock.runFor(150);
    await expectSaid('1 of 1');
    expect(searches().slice(count)).to.deep.equal(['words=drug 11&per-page=10']);
  });

  it('accepts scans one after another, and searches for nothing else', async () => {
    await open();
    for (const [code, says, asked] of [
      [[barcode], '5: DRUG 5', barcode],
      [[`21ABC123`, 'GS', `010${barcode}17261231`], '5: DRUG 5', barcode],
      [
        [`]d2010${unknown}17261231`],
        `No product has the barcode ${unknown}. Its check digit is wrong`,
        unknown,
      ],
    ] as const) {
      const count = searches().length;
      for (const part of code)
        await (part === 'GS' ? page.keyboard.press('Control+]') : page.keyboard.type(part));
      await page.keyboard.press('Enter');
      await page.clock.runFor(150);
      await expectSaid(says);
      expect(searches().slice(count)).to.deep.equal([`barcode=${asked}&per-page=10`]);
    }
    // A search that a later search has ended counts as failed.
    expect(witness.complaints.filter((it) => !it.startsWith('failed'))).to.deep.equal([]);
  });

  it("shows the service's message if the key is refused", async () => {
    await open('/refused');
    await type('drug');
    await expectSaid('A valid key is required');
    witness.complaints.length = 0; // The browser itself reports the 401.
  });

  it('may read responses and their fields, while other origins may not', async () => {
    await open();
    // Passes text, because the compiler of these tests names functions with a helper that pages do not have.
    const ask = (path: string, headers: Record<string, string> = {}) =>
      page.evaluate(`fetch('${api.origin}${path}', {
        headers: ${JSON.stringify({ authorization: `Bearer ${api.key}`, ...headers })},
      }).then(async ({ status, headers }) => ({
        status, version: headers.get('medref-version'), etag: headers.get('etag'),
        digest: headers.get('medref-digest'), id: headers.get('x-request-id'),
      }), ({ name }) => name)`) as Promise<Record<string, string>>;
    const { etag = '', ...list } = await ask('/products', { 'x-request-id': 'mine' });
    expect(list).to.include({ status: 200, id: 'mine' }).and.to.have.property('version').that.is.a('string');
    expect(await ask('/products', { 'if-none-match': etag })).to.include({ status: 304, etag });
    expect(await ask('/products/9')).to.include({ status: 404 });
    expect((await ask('/products', { accept: 'application/x-ndjson' }))['digest']).to.match(/^list=:.+set=:/);
    await page.goto(site.origin.replace('127.0.0.1', 'localhost'));
    expect(await ask('/products')).to.equal('TypeError');
  });
});
