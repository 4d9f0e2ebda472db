// GET /docs: the page on which the API is read and tried, and GET /docs/{file}: what it loads; without a key.

import Boom from '@hapi/boom';
import type { ServerRoute } from '@hapi/hapi';
import { docsFiles, docsPage } from '../openapi/docs-page.ts';
import { fixedAnswer } from '../reply/fixed-answer.ts';
import { prefersToJson } from '../requests/media-types.ts';

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
