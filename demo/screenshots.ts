// Takes a picture of every dashboard page, light and dark, from a fresh demo. docs/screenshots has one of them.
// node --import tsx demo/screenshots.ts http://127.0.0.1:41234 /tmp/screenshots

import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { type Browser, chromium } from 'playwright-core';
import { findChromium } from '../bin/setup.mjs';

const viewport = { width: 1120, height: 760 };

const executablePath = findChromium();
const [, , address, folder] = process.argv;
if (address === undefined || folder === undefined || executablePath === undefined)
  throw new Error('Give the address of a dashboard and a folder, and install Chromium: node bin/setup.mjs.');
await mkdir(folder, { recursive: true });
const browser = await chromium.launch({ executablePath, args: ['--no-sandbox'] });
try {
  for (const [name, path] of await pagesOf(address)) {
    for (const scheme of ['light', 'dark'] as const)
      await shoot(browser, {
        file: join(folder, `dashboard-${name}-${scheme}.png`),
        scheme,
        url: `${address}/${path}`,
      });
  }
} finally {
  await browser.close();
}

/** The pages, with example data. */
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
  { file, scheme, url }: { readonly file: string; readonly scheme: 'light' | 'dark'; readonly url: string },
): Promise<void> {
  const page = await browser.newPage({ viewport, colorScheme: scheme });
  await page.goto(url);
  await page.screenshot({ path: file });
  await page.close();
}
