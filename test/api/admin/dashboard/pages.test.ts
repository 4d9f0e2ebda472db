// Tests every page of the dashboard in a real Chromium: light and dark, on a phone, with a screen reader, and with the
// keyboard alone.

import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { expect } from 'chai';
import type { Page } from 'playwright-core';
import { connectForWriting, type Redis } from '../../../../shared/redis/connections.ts';
import { useBrowser, type Witness, watch } from '../../../support/browser.ts';
import { fillDashboard, startDashboard, type TestDashboard } from '../../../support/dashboard.ts';
import { useRedis } from '../../../support/redis-server.ts';

const axe = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');

describe('the pages of the dashboard in Chromium', function () {
  this.timeout(60_000);
  const server = useRedis();
  const browser = useBrowser();
  let redis: Redis;
  let dashboard: TestDashboard;
  let pages: ReadonlyMap<string, string>;
  let page: Page;
  let witness: Witness;

  before(async () => {
    redis = await connectForWriting(server().url);
    const { first, second } = await fillDashboard(redis, server().url);
    dashboard = await startDashboard({ redisUrl: server().url });
    const imports = await (await fetch(`${dashboard.origin}/imports`)).text();
    const diff = `diff?from=${first}&to=${second}`;
    pages = new Map([
      ['the overview', ''],
      ['imports', 'imports'],
      ['an import', `import?id=${/id=([\d-]+)/.exec(imports)?.[1]}`],
      ['versions', 'versions'],
      ['a diff', diff],
      ['changed records', `${diff}&kind=changed`],
      ['records', 'browse'],
      ['a record with a long name', 'record?id=4'],
      ['a record that is not there', 'record?id=60'],
      ['rejects', 'rejects'],
      ['keys', 'keys'],
      ['a page that there is not', 'nothing'],
      ['a wrong parameter', 'browse?page=x'],
      ['an id of very many digits', `record?id=${'9'.repeat(400)}`],
    ]);
    page = await browser().newPage();
    witness = await watch(page, dashboard.origin);
  });
  after(async () => {
    await page.close();
    await dashboard.stop();
    redis.disconnect();
  });

  /** Returns the violations that axe finds on the open page, as sentences: by all of its rules, or by some. */
  async function findings(rules?: readonly string[]): Promise<string[]> {
    // Uses the browser's protocol, because the page's policy would block a script that the page loads itself.
    if ((await page.evaluate('typeof axe')) === 'undefined') await page.evaluate(axe);
    // A link stops the refresh (WCAG 2.2, criterion 2.2.1), which this rule does not see.
    const ignored = { 'meta-refresh': { enabled: false }, 'meta-refresh-no-exceptions': { enabled: false } };
    const options = JSON.stringify({
      resultTypes: ['violations'],
      ...(rules ? { runOnly: rules } : { rules: ignored }),
    });
    return page.evaluate(`axe.run(${options}).then(({ violations }) => violations.flatMap(
      ({ id, help, nodes }) => nodes.map((node) => id + ': ' + help + ': ' + node.html + ' ' + (node.any[0]?.message ?? ''))))`);
  }
  const ofColours = ['color-contrast', 'link-in-text-block'];

  for (const name of [
    ...['the overview', 'imports', 'an import', 'versions', 'a diff', 'changed records', 'records'],
    ...['a record with a long name', 'a record that is not there', 'rejects', 'keys'],
    ...['a page that there is not', 'a wrong parameter', 'an id of very many digits'],
  ]) {
    it(`show ${name} without findings of axe, light and dark, within the width of a phone`, async () => {
      const url = `${dashboard.origin}/${pages.get(name)}`;
      await page.setViewportSize({ width: 1280, height: 800 });
      await page.emulateMedia({ colorScheme: 'light' });
      await page.goto(url);
      expect(await findings(ofColours), 'light').to.deep.equal([]);
      const ground = await page.evaluate('getComputedStyle(document.body).backgroundColor');
      await page.emulateMedia({ colorScheme: 'dark' });
      expect(await page.evaluate('getComputedStyle(document.body).backgroundColor')).not.to.equal(ground);
      await page.setViewportSize({ width: 320, height: 640 });
      expect(await findings(), 'dark, on a phone').to.deep.equal([]);
      expect(await page.evaluate('document.documentElement.scrollWidth'), 'at 320 px').to.equal(320);
      const ofNetwork = /^console: Failed to load resource: the server responded with a status of 40[04]/;
      expect(witness.complaints.splice(0).filter((it) => !ofNetwork.test(it))).to.deep.equal([]);
      expect(witness.outside).to.deep.equal([]);
    });
  }

  it('keep the content of a card inside it at any width', async () => {
    for (const width of [320, 700, 1_120, 1_500]) {
      await page.setViewportSize({ width, height: 640 });
      await page.goto(dashboard.origin);
      const wider = await page.evaluate(`[...document.querySelectorAll('.card, .card *')].filter(
        (it) => it.getBoundingClientRect().right > it.closest('.card').getBoundingClientRect().right + 0.5).map((it) => it.outerHTML)`);
      expect(wider, `at ${width} px`).to.deep.equal([]);
    }
  });

  it('isolate names with another text direction', async () => {
    await page.goto(`${dashboard.origin}/browse`);
    const places = (await page.evaluate(`[...document.querySelectorAll('tbody tr')].slice(0, 3).map((row) =>
      [...row.children].map((cell) => cell.getBoundingClientRect().left))`)) as number[][];
    expect(new Set(places.map(String)).size).to.equal(1);
    expect(await page.evaluate(`document.querySelectorAll('main script, main img').length`)).to.equal(0);
    expect(await page.evaluate(`getComputedStyle(document.querySelector('bdi')).unicodeBidi`)).to.equal(
      'isolate',
    );
  });

  it('lead by keyboard past the navigation to a record by its name, and to its versions', async () => {
    await page.setViewportSize({ width: 1280, height: 800 });
    await page.goto(`${dashboard.origin}/browse`);
    await page.keyboard.press('Tab');
    expect(await page.evaluate('document.activeElement.textContent')).to.equal('Skip to content');
    const outline = await page.evaluate('getComputedStyle(document.activeElement).outlineStyle');
    expect(outline).to.equal('solid');
    await page.keyboard.press('Enter');
    expect(await page.evaluate('document.activeElement.id')).to.equal('content');
    await page.getByLabel('Name starts with').fill('drug 61');
    await page.keyboard.press('Enter');
    await page.getByRole('link', { name: '61', exact: true }).click();
    expect(await page.getByRole('heading', { level: 1 }).innerText()).to.equal('Record 61 of products');
    await page.getByRole('link', { name: 'Versions' }).click();
    await page.getByRole('button', { name: 'Compare' }).click();
    expect(await page.getByRole('heading', { level: 1 }).innerText()).to.equal('Differences in products');
    expect(witness.complaints).to.deep.equal([]);
  });
});
