// A real Chromium, headless, for a suite of tests; and what a page of it did that nobody wants.

import { type Browser, chromium, type Page } from 'playwright-core';
import { findChromium } from '../../bin/setup.mjs';

/** One browser for a mocha suite: started before its tests, closed after them. */
export function useBrowser(): () => Browser {
  let browser: Browser | undefined;
  before(async () => {
    const executablePath = findChromium();
    if (executablePath === undefined)
      throw new Error('There is no Chromium on the PATH; "node bin/setup.mjs" installs one.');
    // Containers and root have no sandbox; these pages are our own.
    browser = await chromium.launch({ executablePath, args: ['--no-sandbox', '--disable-dev-shm-usage'] });
  });
  after(() => browser?.close());
  return () => {
    if (browser === undefined) throw new Error('The browser of a suite is there inside its tests only.');
    return browser;
  };
}

/** What a page complained of and whom it asked, from when this is called. */
export interface Witness {
  /** Violations of its policy, errors on its console, exceptions, answers that failed. */
  readonly complaints: string[];
  /** Requests to other origins than this one. */
  readonly outside: string[];
  /** All requests. */
  readonly requests: string[];
}

/** Watches a page that was not opened yet. */
export async function watch(page: Page, origin: string): Promise<Witness> {
  const witness: Witness = { complaints: [], outside: [], requests: [] };
  const { complaints, outside, requests } = witness;
  await page.exposeFunction('tellViolation', (what: string) => complaints.push(`policy: ${what}`));
  // As text: what compiles these tests names functions by a function of its own, which pages do not have.
  await page.addInitScript(`document.addEventListener('securitypolicyviolation', (event) =>
    tellViolation(event.violatedDirective + ' ' + event.blockedURI + ' ' + event.sourceFile + ' ' + event.sample));`);
  page.on('console', (message) => {
    if (['error', 'warning'].includes(message.type())) complaints.push(`console: ${message.text()}`);
  });
  page.on('pageerror', (error) => complaints.push(`exception: ${error.message}`));
  page.on('requestfailed', (request) => complaints.push(`failed: ${request.url()}`));
  page.on('request', (request) => {
    const url = request.url();
    requests.push(url);
    if (!url.startsWith(`${origin}/`) && !url.startsWith('data:')) outside.push(url);
  });
  return witness;
}
