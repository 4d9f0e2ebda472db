// The data listener: a table of contents of its plugins and routes.

import type { BlockList } from 'node:net';
import { server as hapiServer, type Server } from '@hapi/hapi';
import type { Logger } from 'pino';
import type { ServedCollection } from '../shared/collections/define.ts';
import { type KnownKeys, requireKeys } from './auth.ts';
import type { ClientRecord } from './client-versions.ts';
import type { AllowedOrigins } from './cors.ts';
import { preflights } from './cors.ts';
import { errors } from './error-responses.ts';
import type { ServiceError } from './errors.ts';
import {
  type CompletedRequest,
  createDataListener,
  drainOnStop,
  limitRequests,
  respondWithinMs,
} from './http.ts';
import type { RateLimiter } from './rate-limit.ts';
import type { ReadModel } from './read/read-model.ts';
import { changesRoute } from './routes/changes.ts';
import { docsRoutes, homeRoute, openApiRoute } from './routes/docs.ts';
import { healthRoutes } from './routes/health.ts';
import { versionsRoute } from './routes/kept-versions.ts';
import { listRoute } from './routes/list.ts';
import { readOnlyRoutes } from './routes/methods.ts';
import { recordRoute } from './routes/record.ts';

/** The dependencies of the server. */
export interface ServerDependencies {
  readonly collections: readonly ServedCollection[];
  readonly readModel: ReadModel;
  readonly apiKeys: KnownKeys;
  /** If absent, no key has a rate limit. */
  readonly rateLimiter?: RateLimiter;
  readonly clientVersions: ClientRecord;
  /** The event-loop lag above which requests are refused, in ms; 1 s by default. */
  readonly lateMs?: number;
  /** Why Redis is unavailable, as a sentence; `null` while it is up. */
  readonly whyUnavailable: () => string | null;
  /** Problems of the Redis settings, as sentences; none by default. */
  readonly setupWarnings?: () => readonly string[];
  readonly host: string;
  readonly port: number;
  /** The base URL of links; `undefined`: `http://` and the request's `Host`. */
  readonly baseUrl: string | undefined;
  /** Origins whose pages may read responses; none by default. */
  readonly corsOrigins?: AllowedOrigins | undefined;
  /** Proxies whose forwarding headers are trusted; none by default. */
  readonly trustedProxies?: BlockList | undefined;
  readonly logger: Logger;
  /** Called for each request when its response has ended. */
  readonly onResponse?: (request: CompletedRequest) => void;
  /** Called for each 500 and 503 with the id of its request, and for each 401. */
  readonly onServiceError?: (serviceError: ServiceError, requestId: string) => void;
  readonly onUnauthorized?: () => void;
  /** How long a connection may be silent, in ms; 90 s by default. */
  readonly stallMs?: number;
  /** How long silent connections stay open on shutdown, in ms; they close at once by default. */
  readonly quietMs?: number;
}

/** Builds the server; the caller starts it. */
export async function createServer(deps: ServerDependencies): Promise<Server> {
  const {
    collections,
    readModel,
    apiKeys,
    rateLimiter,
    clientVersions,
    lateMs,
    whyUnavailable,
    setupWarnings = () => [],
    host,
    port,
    baseUrl,
    corsOrigins,
    trustedProxies,
    logger,
    stallMs,
    quietMs = 0,
  } = deps;
  const {
    onResponse = () => undefined,
    onServiceError = () => undefined,
    onUnauthorized = () => undefined,
  } = deps;
  const server = hapiServer({
    host,
    port,
    listener: createDataListener({ onResponse, corsOrigins, trustedProxies, stallMs }),
    load: { sampleInterval: 100 },
    // Responses compress their bodies themselves, see reply/body.ts.
    compression: false,
    // medref reads no cookies, so a malformed cookie is no error.
    routes: {
      response: { ranges: false },
      state: { parse: false, failAction: 'ignore' },
      timeout: { server: respondWithinMs },
    },
    debug: false,
  });
  requireKeys(server, { apiKeys, rateLimiter, clientVersions });
  await server.register([
    { plugin: errors, options: { logger, onResponse, onServiceError, onUnauthorized } },
    {
      plugin: readOnlyRoutes,
      options: {
        routes: [
          ...collections.map((collection) =>
            listRoute(collection, readModel, { baseUrl, logger, clientVersions }),
          ),
          ...collections.map((collection) =>
            changesRoute(collection, { readModel, apiKeys, baseUrl, clientVersions }),
          ),
          ...collections.map((collection) => versionsRoute(collection, readModel, baseUrl)),
          ...collections.map((collection) => recordRoute(collection, readModel)),
          ...healthRoutes(collections, readModel, { whyUnavailable, setupWarnings }),
          openApiRoute(collections, baseUrl ?? `http://${host.includes(':') ? `[${host}]` : host}:${port}`),
          ...docsRoutes(),
        ],
      },
    },
  ]);
  server.route(homeRoute);
  limitRequests(server, { onServiceError, lateMs });
  drainOnStop(server, quietMs);
  server.ext('onPreStop', () => readModel.waits.stop());
  if (corsOrigins !== undefined) await server.register(preflights);
  return server;
}
