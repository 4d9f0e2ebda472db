// GET /docs: the page on which the API is read and tried, and GET /docs/{file}: what it loads; without a key.

import Boom from '@hapi/boom';
import type { ServerRoute } from '@hapi/hapi';
import type { ServedCollection } from '../../shared/collections/define.ts';
import { docsFiles, docsPage } from '../openapi/docs-page.ts';
import { openApiText } from '../openapi/document.ts';
import { prefersToJson } from '../query.ts';
import { fixedAnswer } from '../reply/reply.ts';

export function docsRoutes(): ServerRoute[] {
  const answers = new Map(Object.entries(docsFiles()).map(([name, file]) => [name, fixedAnswer(file)]));
  return [
    { method: 'GET', path: '/docs', options: { auth: false }, handler: fixedAnswer(docsPage) },
    {
      method: 'GET',
      path: '/docs/{file}',
      options: { auth: false },
      handler: (request, h) => {
        const answer = answers.get(request.params['file'] as string);
        if (!answer) throw Boom.notFound();
        return answer(request, h);
      },
    },
  ];
}

/** GET /: leads browsers to the page. To all others there is nothing, as with any method but GET and HEAD. */
export const homeRoute: ServerRoute = {
  method: 'GET',
  path: '/',
  options: { auth: false },
  handler: (request, h) => {
    if (!prefersToJson(request, 'text/html')) throw Boom.notFound();
    // Relative, so that it leads below the address that a proxy has the service at.
    return h.redirect('docs').header('cache-control', 'no-cache').vary('Accept');
  },
};

export function openApiRoute(served: readonly ServedCollection[]): ServerRoute {
  // Made for the first who asks: it takes a third of what the start of an API does, and few ask.
  let answer: ReturnType<typeof fixedAnswer> | undefined;
  const made = () => {
    const text = openApiText(served.map(({ collection }) => collection));
    return fixedAnswer({ type: 'application/json', bytes: Buffer.from(text) });
  };
  return {
    method: 'GET',
    path: '/openapi.json',
    options: { auth: false },
    handler: (request, h) => {
      answer ??= made();
      return answer(request, h);
    },
  };
}
