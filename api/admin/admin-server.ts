// The admin listener, for operators: GET /metrics. It asks for no key, and listens on loopback unless told otherwise.

import { server as hapiServer, type Server } from '@hapi/hapi';
import type { Metrics } from './metrics.ts';

/** Builds the server; starting it is the caller's. */
export function createAdminServer({
  metrics: { registry },
  host,
  port,
}: {
  readonly metrics: Metrics;
  readonly host: string;
  readonly port: number;
}): Server {
  const server = hapiServer({ host, port, debug: false });
  server.route({
    method: 'GET',
    path: '/metrics',
    handler: async (_request, h) => h.response(await registry.metrics()).type(registry.contentType),
  });
  return server;
}
