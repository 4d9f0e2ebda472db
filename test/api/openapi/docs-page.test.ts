import { expect } from 'chai';
import type { Page } from 'playwright-core';
import { products as productCollection } from '../../../shared/collections/products.ts';
import { useApi } from '../../support/api.ts';
import { useBrowser, type Witness, watch } from '../../support/browser.ts';
import { importRecords } from '../../support/importing.ts';
import { products } from '../../support/records.ts';
import { useRedis } from '../../support/redis-server.ts';

describe('the page of the API in Chromium', function () {
  this.timeout(60_000);
  const redis = useRedis();
  const api = useApi(redis);
  const browser = useBrowser();
  // All tests share one page, because Chromium parses Swagger UI for each page. One test loads it again at a different path.
  let page: Page;
  let witness: Witness;
  before(async () => {
    await importRecords(products(3), productCollection, { redisUrl: redis().url });
    while ((await api().get('/products/3')).status !== 200);
    page = await browser().newPage();
    witness = await watch(page, api().origin);
    await page.goto(`${api().origin}/docs`);
    await page.locator('.opblock').first().waitFor();
  });

  const expectNoComplaint = () => {
    expect(witness.complaints).to.deep.equal([]);
    expect(witness.outside).to.deep.equal([]);
  };
  /** Expects a refusal, which the browser itself reports on the console. */
  const expectRefusal = async (operation: string) => {
    expect((await execute(operation)).status).to.match(/^401/);
    expect(witness.complaints.splice(0)).to.deep.equal([
      'console: Failed to load resource: the server responded with a status of 401 (Unauthorized)',
    ]);
  };

  async function enterKey(key: string): Promise<void> {
    await page.locator('button.authorize').first().click();
    const dialog = page.locator('.auth-container');
    await dialog.locator('input').fill(key);
    await dialog.locator('button[type=submit]').click();
    await page.locator('.auth-wrapper .btn-done').click();
  }

  /** Sends the request of an open operation. Returns the displayed status and body. */
  async function execute(operation: string): Promise<{ status: string; body: string }> {
    const block = page.locator(`[id$="-${operation}"]`);
    const [sent] = await Promise.all([
      page.waitForResponse((it) => it.request().resourceType() === 'fetch'),
      block.locator('button.execute').click(),
    ]);
    const response = block.locator('.live-responses-table .response');
    // The page shows an earlier response until it displays this one.
    const shown = response.locator('.response-col_status', { hasText: String(sent.status()) }).first();
    return { status: (await shown.innerText()).trim(), body: await response.innerText() };
  }

  it('shows every operation of the document, and follows a dark system theme', async () => {
    await page.emulateMedia({ colorScheme: 'dark' });
    expect(await page.locator('.opblock').count()).to.equal(15);
    expect(await page.locator('.info .title').innerText()).to.match(/^medref/);
    await page.locator('html.dark-mode').waitFor();
    await page.emulateMedia({ colorScheme: 'light' });
    await page.locator('html:not(.dark-mode)').waitFor();
    expectNoComplaint();
  });

  it('fits a phone, and offers no NDJSON, which would fill the page', async () => {
    const size = page.viewportSize() as { width: number; height: number };
    await page.setViewportSize({ width: 390, height: 844 });
    await page.locator('#operations-Products-listProducts .opblock-summary-control').click();
    await page.locator('#operations-Products-listProducts .opblock-body').waitFor();
    const beyond = await page.evaluate('document.documentElement.scrollWidth - innerWidth');
    expect(beyond).to.equal(0);
    const types = page.locator('#operations-Products-listProducts select.content-type option');
    expect(new Set(await types.allInnerTexts())).to.deep.equal(new Set(['application/json']));
    await page.locator('#operations-Products-listProducts .opblock-summary-control').click();
    await page.setViewportSize(size);
  });

  it('shows a response after a key is entered, contacts no other server, and keeps no key', async () => {
    await page.locator('#operations-Products-listProducts .opblock-summary-control').click();
    await expectRefusal('listProducts');
    await enterKey(api().key);
    const { status, body } = await execute('listProducts');
    expect(status).to.match(/^200/);
    expect(body).to.include('DRUG 3 10 MG TABLET').and.to.include('medref-version');
    expect(witness.requests.at(-1)).to.equal(`${api().origin}/products?page=1&per-page=200`);
    expectNoComplaint();

    const kept = await page.evaluate(
      'JSON.stringify([{ ...localStorage }, { ...sessionStorage }, document.cookie])',
    );
    expect(kept).to.equal('[{},{},""]');
  });

  it('requests the example record, also behind a proxy, with a key that is entered again', async () => {
    // Acts like a proxy that serves the API below /reference and removes this prefix.
    await page.route('**/reference/**', async (route) => {
      const response = await route.fetch({ url: route.request().url().replace('/reference/', '/') });
      await route.fulfill({ response });
    });
    await page.goto(`${api().origin}/reference/docs#/Products/getProduct`);
    await page.locator('#operations-Products-getProduct .opblock-body').waitFor();
    await expectRefusal('getProduct');
    await enterKey(api().key);
    const { status, body } = await execute('getProduct');
    expect(status).to.match(/^200/);
    expect(body).to.include('DRUG 1 10 MG TABLET');
    expect(witness.requests.at(-1)).to.equal(`${api().origin}/reference/products/1`);
    expectNoComplaint();
  });
});
