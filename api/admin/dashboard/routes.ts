// The dashboard on the admin listener: who may read it, which methods, the headers of every page, errors as pages. What
// renders is loaded when the first page is asked for.

import Boom from '@hapi/boom';
import type { Plugin, Request, ResponseObject, ResponseToolkit, Server } from '@hapi/hapi';
import { VersionGoneError } from '../../read/versions.ts';
import { late, type Trouble, troubleOf } from '../../reads/trouble.ts';
import { LateError, within } from '../../reads/within.ts';
import { unreadBody } from '../../requests/unread-body.ts';
import { adminAccess } from '../admin-access.ts';
import type { DashboardSources } from './page.ts';

/** A page that is not made within this, in ms, is not made. */
const renderedWithinMs = 2_000;

/** Nothing but the style sheet; forms lead to the dashboard itself; nobody may frame it. */
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

/** What the dashboard needs. */
export interface DashboardOptions {
  readonly sources: DashboardSources;
  /** See {@link adminAccess}. */
  readonly token: string | undefined;
  /** Told of each wrong password, as a sentence; nobody is unless it is given. */
  readonly onWrongPassword?: (message: string) => void;
  /** Tests shorten how long a page may take. */
  readonly withinMs?: number;
}

/** Serves the dashboard on all paths that no other route has; a path of another route is `besides`, and open to all. */
export const dashboardRoutes: Plugin<DashboardOptions & { readonly besides: string }> = {
  name: 'dashboard-routes',
  register(server: Server, options: DashboardOptions & { readonly besides: string }) {
    const { sources, token, onWrongPassword = () => undefined } = options;
    const { withinMs = renderedWithinMs, besides } = options;
    const requireAccess = adminAccess(token, (network) =>
      onWrongPassword(`A wrong password for the dashboard came from ${network}.`),
    );
    server.ext('onRequest', ({ path, raw }, h) => {
      if (path !== besides) requireAccess(raw.req);
      return h.continue;
    });
    server.route({
      method: '*',
      path: '/{page*}',
      options: { payload: unreadBody },
      handler: async (request, h) => {
        if (!['get', 'head'].includes(request.method)) throw notAllowed(request.method);
        const { renderPage, styleSheet } = await import('../../dashboard/dashboard.ts');
        const name = (request.params['page'] as string | undefined) ?? '';
        if (name === 'style.css') return styleSheet(request, h);
        const rendering = renderPage(sources, { name, target: request.raw.req.url ?? '' });
        const { status, text } = await within(rendering, withinMs);
        return h.response(text).code(status).type('text/html');
      },
    });
    server.ext('onPreResponse', async (request, h) => {
      const { response } = request;
      if (request.route.path === besides) return h.continue;
      const page = response instanceof Error ? await errorPage(response, h, sources) : response;
      for (const [name, value] of Object.entries(pageHeaders))
        if (page.headers[name] === undefined) page.header(name, value);
      return page === response ? h.continue : page;
    });
  },
};

function notAllowed(method: Request['method']): Boom.Boom {
  const error = Boom.methodNotAllowed(`${method.toUpperCase()} is not possible here; GET and HEAD are.`);
  error.output.headers['Allow'] = 'GET, HEAD';
  return error;
}

async function errorPage(
  error: Boom.Boom,
  h: ResponseToolkit,
  sources: DashboardSources,
): Promise<ResponseObject> {
  const { renderError, damageTold } = await import('../../dashboard/dashboard.ts');
  const trouble =
    error instanceof LateError ? late : ((await damageTold(sources, error)) ?? troubleOf(error));
  const { status, headers, sentences } = trouble ? ofTrouble(trouble) : ofBoom(error);
  const page = h
    .response(await renderError(sources, { status, sentences }))
    .code(status)
    .type('text/html');
  for (const [name, value] of Object.entries(headers)) page.header(name, String(value));
  return page;
}

interface ErrorFacts {
  readonly status: number;
  readonly headers: Readonly<Record<string, unknown>>;
  readonly sentences: readonly string[];
}

function ofTrouble({ cause, status, message, reason, retryAfter }: Trouble): ErrorFacts {
  const sentences = [message, ...(reason === null || reason === message ? [] : [reason])];
  // Nobody has to come again for that; somebody has to import.
  if (cause === 'nothing-published') return { status: 404, headers: {}, sentences };
  return { status, headers: retryAfter === null ? {} : { 'retry-after': retryAfter }, sentences };
}

function ofBoom(error: Boom.Boom): ErrorFacts {
  if (error instanceof VersionGoneError) return { status: 410, headers: {}, sentences: [error.message] };
  const { statusCode: status, headers } = error.output;
  if (status === 404) return { status, headers, sentences: ['There is no such page.'] };
  return {
    ...{ status, headers: headers as Readonly<Record<string, unknown>> },
    sentences: [status >= 500 ? 'Something went wrong here. That is a mistake of medref.' : error.message],
  };
}
