// In: the address of a dashboard, such as the demo prints. Out: docs/screenshots/dashboard-*.png: each page, by light and by
// dark. Run it on a fresh demo: node --import tsx demo/screenshots.ts http://127.0.0.1:41234

import { fileURLToPath } from 'node:url';
import { type Browser, chromium } from 'playwright-core';
import { findChromium } from '../bin/setup.mjs';

const folder = fileURLToPath(new URL('../docs/screenshots/', import.meta.url));
const viewport = { width: 1120, height: 760 };

const executablePath = findChromium();
const [, , address] = process.argv;
if (address === undefined || executablePath === undefined)
  throw new Error('Give the address of a dashboard, and install a Chromium: node bin/setup.mjs.');
const browser = await chromium.launch({ executablePath, args: ['--no-sandbox'] });
try {
  for (const [name, path] of await pagesOf(address)) {
    for (const scheme of ['light', 'dark'] as const)
      await shoot(browser, { name, scheme, url: `${address}/${path}` });
  }
} finally {
  await browser.close();
}

/** Each page, with something to show. */
async function pagesOf(origin: string): Promise<[name: string, path: string][]> {
  const text = async (path: string) => (await fetch(`${origin}/${path}`)).text();
  const first = (page: string, link: RegExp) => link.exec(page)?.[0].replaceAll('&amp;', '&') ?? '';
  const about = '?collection=companies';
  const diff = `${first(await text(`versions${about}`), /diff\?[^"]+/)}&kind=changed`;
  return [
    ['overview', ''],
    ['imports', `imports${about}`],
    ['import', first(await text(`imports${about}`), /import\?[^"]+/)],
    ['versions', `versions${about}`],
    ['diff', diff],
    ['browse', 'browse?name=n'],
    ['record', first(await text(diff), /record\?[^"]+/)],
    ['rejects', `rejects${about}`],
    ['keys', 'keys'],
  ];
}

async function shoot(
  browser: Browser,
  { name, scheme, url }: { readonly name: string; readonly scheme: 'light' | 'dark'; readonly url: string },
): Promise<void> {
  const page = await browser.newPage({ viewport, colorScheme: scheme });
  await page.goto(url);
  await page.screenshot({ path: `${folder}dashboard-${name}-${scheme}.png` });
  await page.close();
}
