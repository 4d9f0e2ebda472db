// The routes of the dashboard: who may read it, which page a path is, the headers of every page, and error pages.

import { STATUS_CODES } from 'node:http';
import Boom from '@hapi/boom';
import type { Plugin, Request, Server } from '@hapi/hapi';
import { html } from 'hono/html';
import { damageIn } from '../../../shared/redis/failures.ts';
import { TimeoutError, withTimeout } from '../../../shared/time.ts';
import { late, serviceErrorOf } from '../../errors.ts';
import { VersionGoneError } from '../../read/versions.ts';
import { fixedResponse } from '../../reply/reply.ts';
import { unreadBody } from '../../routes/methods.ts';
import { adminAccess } from '../access.ts';
import { candidatePage } from './candidate.ts';
import { layout, sentenceLength, shownText } from './html.ts';
import { importPage, importsPage } from './imports.ts';
import { clientsPage, keysPage } from './keys.ts';
import { overviewPage } from './overview.ts';
import { collectionsOf, type DashboardSources, type PageDefinition, readContext } from './page.ts';
import { browsePage, recordPage } from './records.ts';
import { rejectsPage } from './rejects.ts';
import { styleText } from './style.ts';
import { diffPage, versionsPage } from './versions.ts';

/** The pages by their paths, in the order of the menu. */
const pages: Readonly<Record<string, PageDefinition>> = {
  '': overviewPage,
  imports: importsPage,
  import: importPage,
  candidate: candidatePage,
  versions: versionsPage,
  diff: diffPage,
  browse: browsePage,
  record: recordPage,
  rejects: rejectsPage,
  clients: clientsPage,
  keys: keysPage,
};

const menu = Object.entries(pages).flatMap(([name, { label }]) =>
  label === undefined ? [] : [{ name, label }],
);

/** How long a page may take, in ms. */
const pageTimeoutMs = 2_000;

/** Allows only the style sheet and forms of the dashboard, and no frame around it. */
const policy = [
  ...["default-src 'none'", "style-src 'self'", 'img-src data:', "form-action 'self'"],
  ...["base-uri 'none'", "frame-ancestors 'none'"],
].join('; ');

const pageHeaders = {
  'content-security-policy': policy,
  'x-content-type-options': 'nosniff',
  'referrer-policy': 'no-referrer',
  'cross-origin-opener-policy': 'same-origin',
  'cross-origin-resource-policy': 'same-origin',
  'cache-control': 'no-store',
};

/** The options of the dashboard. */
export interface DashboardOptions {
  readonly sources: DashboardSources;
  /** See {@link adminAccess}. */
  readonly token: string | undefined;
  /** Logs a wrong password, as a sentence. */
  readonly onWrongPassword?: (message: string) => void;
  /** How long a page may take, in ms; 2,000 by default. */
  readonly withinMs?: number;
}

/** Serves the dashboard on every path without a route of its own; the path `openPath` needs no password. */
export const dashboardRoutes: Plugin<DashboardOptions & { readonly openPath: string }> = {
  name: 'dashboard-routes',
  register(server: Server, options: DashboardOptions & { readonly openPath: string }) {
    const { sources, token, openPath, withinMs = pageTimeoutMs, onWrongPassword = () => undefined } = options;
    const requireAccess = adminAccess(token, (network) =>
      onWrongPassword(`Wrong password for the dashboard from ${network}.`),
    );
    server.ext('onRequest', ({ path, raw }, h) => {
      if (path !== openPath) requireAccess(raw.req);
      return h.continue;
    });
    const styleSheet = fixedResponse({ type: 'text/css; charset=utf-8', bytes: Buffer.from(styleText) });
    server.route([
      { method: 'GET', path: '/style.css', handler: styleSheet },
      {
        method: '*',
        path: '/{page*}',
        options: { payload: unreadBody },
        handler: async (request, h) => {
          if (!['get', 'head'].includes(request.method)) throw notAllowed(request.method);
          const { status, text } = await withTimeout(renderPage(sources, request), withinMs);
          return h.response(text).code(status).type('text/html');
        },
      },
    ]);
    let awaySince: Date | null = null;
    sources.redis.on('close', () => {
      awaySince ??= new Date();
    });
    sources.redis.on('ready', () => {
      awaySince = null;
    });
    server.ext('onPreResponse', async (request, h) => {
      const { response } = request;
      if (request.route.path === openPath) return h.continue;
      if (!(response instanceof Error)) {
        for (const [name, value] of Object.entries(pageHeaders))
          if (response.headers[name] === undefined) response.header(name, value);
        return h.continue;
      }
      const { status, headers, sentences } = await errorFacts(sources, response, awaySince);
      const body = html`${sentences.map((sentence) => html`<p>${shownText(sentence, sentenceLength)}</p>`)}
<p><a href="./">Overview</a></p>`;
      const { instance, keyPrefix } = sources;
      const title = `${status} ${STATUS_CODES[status] ?? 'Error'}`;
      // The overview comes back by itself.
      const isOverview = request.path === '/' && request.query['refresh'] !== 'off';
      const refresh = isOverview && status === 503 ? { page: '', seconds: 5, isOn: true } : undefined;
      const text = await layout({ title, body, menu, instance, keyPrefix, refresh, isError: true });
      const page = h.response(text).code(status).type('text/html');
      for (const [name, value] of Object.entries({ ...pageHeaders, ...headers }))
        page.header(name, String(value));
      return page;
    });
  },
};

/** @throws Boom 404 if there is no such page, and the errors of the page */
async function renderPage(
  sources: DashboardSources,
  request: Request,
): Promise<{ readonly status: number; readonly text: string }> {
  const name = (request.params['page'] as string | undefined) ?? '';
  const page = Object.hasOwn(pages, name) ? pages[name] : undefined;
  if (!page) throw Boom.notFound();
  const collections = collectionsOf(page, sources).map((it) => it.collection.name);
  const context = readContext(page, sources, request.raw.req.url ?? '');
  const { title, body, collection, status = 200, refresh } = await page.render(context);
  const current = page.parent ?? name;
  const { instance, keyPrefix } = sources;
  const text = await layout({
    ...{ title, body, menu, current, collections, collection, instance, keyPrefix },
    refresh: refresh && { ...refresh, page: name },
  });
  return { status, text };
}

function notAllowed(method: Request['method']): Boom.Boom {
  const error = Boom.methodNotAllowed(`${method.toUpperCase()} is not allowed; use GET or HEAD.`);
  error.output.headers['Allow'] = 'GET, HEAD';
  return error;
}

interface ErrorFacts {
  readonly status: number;
  readonly headers?: Readonly<Record<string, unknown>>;
  readonly sentences: readonly string[];
}

/** @param awaySince when the connection to Redis was lost; `null` if there is one */
async function errorFacts(
  { redis, instance }: DashboardSources,
  error: Boom.Boom,
  awaySince: Date | null,
): Promise<ErrorFacts> {
  const damage = await damageIn(redis, error);
  if (damage)
    return {
      status: 503,
      sentences: [`${damage.message} Run medref verify, or see docs/RUNBOOK.md, "Damaged data".`],
    };
  const serviceError = error instanceof TimeoutError ? late : serviceErrorOf(error);
  if (serviceError) {
    const { cause, status, message, reason, retryAfter } = serviceError;
    const away =
      awaySince &&
      `Redis at ${instance.redis} has been unavailable since ${awaySince.toISOString().slice(11, 19)} UTC. Readers get 503 until it is back.`;
    const isAway = cause === 'away' && away !== null;
    const sentences = isAway ? [away] : [...new Set([message, reason])].filter((it) => it !== null);
    // A retry does not help: an operator has to import.
    if (cause === 'nothing-published') return { status: 404, sentences };
    return { status, headers: retryAfter === null ? {} : { 'retry-after': retryAfter }, sentences };
  }
  if (error instanceof VersionGoneError) return { status: 410, sentences: [error.message] };
  const { statusCode: status, headers } = error.output;
  if (status === 404) return { status, headers, sentences: ['There is no such page.'] };
  return {
    status,
    headers,
    sentences: [status >= 500 ? 'Internal error; it has been logged.' : error.message],
  };
}
