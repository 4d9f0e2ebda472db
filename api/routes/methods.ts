// 405 for methods other than GET and HEAD on existing paths, and 404 on all other paths.

import Boom from '@hapi/boom';
import type { Plugin, Server, ServerRoute } from '@hapi/hapi';

/** Registers read-only routes, each with its 405 for other methods under the same authentication. */
export const readOnlyRoutes: Plugin<{ routes: readonly ServerRoute[] }> = {
  name: 'read-only-routes',
  register(server: Server, { routes }: { routes: readonly ServerRoute[] }) {
    for (const route of routes) {
      server.route(route);
      server.route({
        method: '*',
        path: route.path,
        options: {
          ...authOf(route),
          payload: unreadBody,
        },
        handler: (request) => {
          const error = Boom.methodNotAllowed(
            `${request.method.toUpperCase()} is not allowed; use GET or HEAD.`,
          );
          error.output.headers['Allow'] = 'GET, HEAD';
          throw error;
        },
      });
    }
    server.route({
      method: '*',
      path: '/{any*}',
      options: { auth: false, payload: unreadBody },
      handler: () => {
        throw Boom.notFound();
      },
    });
  },
};

function authOf({ options }: ServerRoute) {
  return typeof options === 'object' && options.auth === false ? { auth: false as const } : {};
}

/** How routes treat a request body: they do not read it. */
export const unreadBody = {
  parse: false,
  output: 'stream',
  maxBytes: Number.MAX_SAFE_INTEGER,
  override: 'application/octet-stream',
} as const;
