// GET /docs and its files: the page to read and try the API; without a key.

import Boom from '@hapi/boom';
import type { ServerRoute } from '@hapi/hapi';
import type { ServedCollection } from '../../shared/collections/define.ts';
import { docsFiles, docsPage } from '../openapi/docs-page.ts';
import { openApiText } from '../openapi/document.ts';
import { prefersToJson } from '../query.ts';
import { fixedResponse } from '../reply/reply.ts';

export function docsRoutes(): ServerRoute[] {
  const responses = new Map(Object.entries(docsFiles()).map(([name, file]) => [name, fixedResponse(file)]));
  return [
    { method: 'GET', path: '/docs', options: { auth: false }, handler: fixedResponse(docsPage) },
    {
      method: 'GET',
      path: '/docs/{file}',
      options: { auth: false },
      handler: (request, h) => {
        const respond = responses.get(request.params['file'] as string);
        if (!respond) throw Boom.notFound();
        return respond(request, h);
      },
    },
  ];
}

/** GET / redirects browsers to the page. Everyone else gets 404. */
export const homeRoute: ServerRoute = {
  method: 'GET',
  path: '/',
  options: { auth: false },
  handler: (request, h) => {
    if (!prefersToJson(request, 'text/html')) throw Boom.notFound();
    // A relative address works behind a proxy with a path prefix.
    return h.redirect('docs').header('cache-control', 'no-cache').vary('Accept');
  },
};

/** @param base the public address of the service */
export function openApiRoute(served: readonly ServedCollection[], base: string): ServerRoute {
  // Built on first request: it takes a third of the start-up time, and few clients need it.
  let respond: ReturnType<typeof fixedResponse> | undefined;
  const made = () => {
    const text = openApiText(
      served.map(({ collection }) => collection),
      `${base}/docs`,
    );
    return fixedResponse({ type: 'application/json', bytes: Buffer.from(text) });
  };
  return {
    method: 'GET',
    path: '/openapi.json',
    options: { auth: false },
    handler: (request, h) => {
      respond ??= made();
      return respond(request, h);
    },
  };
}
