// A real headless Chromium for a test suite, and a record of unwanted events in its pages.

import { type Browser, chromium, type Page } from 'playwright-core';
import { findChromium } from '../../bin/setup.mjs';

/** Declares one browser for a mocha suite. It starts before the tests and closes after them. */
export function useBrowser(): () => Browser {
  let browser: Browser | undefined;
  before(async () => {
    const executablePath = findChromium();
    if (executablePath === undefined)
      throw new Error('There is no Chromium on the PATH; "node bin/setup.mjs" installs one.');
    // The sandbox does not work in containers or as root; these pages are our own.
    browser = await chromium.launch({ executablePath, args: ['--no-sandbox', '--disable-dev-shm-usage'] });
  });
  after(() => browser?.close());
  return () => {
    if (browser === undefined) throw new Error('The browser of a suite is there inside its tests only.');
    return browser;
  };
}

/** Events of a page since `watch` was called. */
export interface Witness {
  /** Violations of its content security policy, console errors and warnings, exceptions, and failed requests. */
  readonly complaints: string[];
  /** Requests to other origins. */
  readonly outside: string[];
  /** All requests. */
  readonly requests: string[];
}

/** Watches a page; call it before the page is opened. */
export async function watch(page: Page, origin: string): Promise<Witness> {
  const witness: Witness = { complaints: [], outside: [], requests: [] };
  const { complaints, outside, requests } = witness;
  await page.exposeFunction('reportViolation', (what: string) => complaints.push(`policy: ${what}`));
  // As text: the compiler of these tests names functions with a helper function, which pages do not have.
  await page.addInitScript(`document.addEventListener('securitypolicyviolation', (event) =>
    reportViolation(event.violatedDirective + ' ' + event.blockedURI + ' ' + event.sourceFile + ' ' + event.sample));`);
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
