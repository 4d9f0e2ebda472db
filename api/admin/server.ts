// The admin listener: GET /metrics, which is open, and the dashboard on all other paths.

import { createServer as createListener } from 'node:http';
import { server as hapiServer, type Server } from '@hapi/hapi';
import type { Registry } from 'prom-client';
import { beforeRequests, tracedResponses } from '../http.ts';
import { type DashboardOptions, dashboardRoutes } from './dashboard/routes.ts';

export type { DashboardSources } from './dashboard/page.ts';
export type AdminServer = Server;

/** The metrics that a scrape returns. */
export type ScrapedMetrics = Pick<Registry, 'contentType' | 'metrics'>;

const metricsPath = '/metrics';

/** Builds the server; the caller starts it. */
export async function createAdminServer({
  scraped,
  dashboard,
  host,
  port,
}: {
  readonly scraped: ScrapedMetrics;
  readonly dashboard: DashboardOptions;
  readonly host: string;
  readonly port: number;
}): Promise<Server> {
  const server = hapiServer({
    ...{ host, port, debug: false },
    listener: createListener({ ServerResponse: tracedResponses(() => undefined) }),
    // medref reads no cookies, so a malformed cookie is no error.
    routes: { state: { parse: false, failAction: 'ignore' } },
  });
  // After a connection's last response Node keeps reading, and another request would crash the process.
  beforeRequests(server.listener, ({ socket }) => socket.writable);
  server.route({
    method: 'GET',
    path: metricsPath,
    handler: async (_request, h) => h.response(await scraped.metrics()).type(scraped.contentType),
  });
  await server.register({ plugin: dashboardRoutes, options: { ...dashboard, openPath: metricsPath } });
  return server;
}
