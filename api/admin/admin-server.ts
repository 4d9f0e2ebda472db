// The admin listener, for operators: GET /metrics, which asks for nothing, and the dashboard on all other paths. It listens
// on loopback unless told otherwise.

import { createServer as createListener } from 'node:http';
import { server as hapiServer, type Server } from '@hapi/hapi';
import { tracedResponses } from '../answers/traced-response.ts';
import { type DashboardOptions, dashboardRoutes } from './dashboard-routes.ts';
import type { Metrics } from './metrics.ts';

export type { DashboardSources } from '../dashboard/page-definition.ts';
export type AdminServer = Server;

const metricsPath = '/metrics';

/** Builds the server; starting it is the caller's. */
export async function createAdminServer({
  metrics: { registry },
  dashboard,
  host,
  port,
}: {
  readonly metrics: Metrics;
  readonly dashboard: DashboardOptions;
  readonly host: string;
  readonly port: number;
}): Promise<Server> {
  const server = hapiServer({
    ...{ host, port, debug: false },
    listener: createListener({ ServerResponse: tracedResponses(() => undefined) }),
    // Cookies are nothing to us, so malformed ones are no fault.
    routes: { state: { parse: false, failAction: 'ignore' } },
  });
  server.route({
    method: 'GET',
    path: metricsPath,
    handler: async (_request, h) => h.response(await registry.metrics()).type(registry.contentType),
  });
  await server.register({ plugin: dashboardRoutes, options: { ...dashboard, besides: metricsPath } });
  return server;
}
