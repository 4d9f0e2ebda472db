// The data listener: a table of contents of its plugins and routes.

import type { BlockList } from 'node:net';
import { server as hapiServer, type Server } from '@hapi/hapi';
import type { Logger } from 'pino';
import type { ServedCollection } from '../shared/collections/define.ts';
import { type KnownKeys, requireKeys } from './auth.ts';
import type { AllowedOrigins } from './cors.ts';
import { preflights } from './cors.ts';
import { errors } from './error-responses.ts';
import type { ServiceError } from './errors.ts';
import {
  answerWithinMs,
  type CompletedRequest,
  createDataListener,
  drainOnStop,
  limitRequests,
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

/** What the server answers from, and where. */
export interface ServerDependencies {
  readonly collections: readonly ServedCollection[];
  readonly readModel: ReadModel;
  readonly apiKeys: KnownKeys;
  /** Without it, no key has a rate limit. */
  readonly rateLimiter?: RateLimiter;
  /** How late the event loop may be before requests are refused, in ms; 1 s by default. */
  readonly lateMs?: number;
  /** Why Redis is away, as a sentence; `null` while it is there. */
  readonly whyAway: () => string | null;
  /** What is wrong with how Redis is set up, as sentences; none unless it is given. */
  readonly setupWarnings?: () => readonly string[];
  readonly host: string;
  readonly port: number;
  /** What links begin with; `undefined`: `http://` and the request's `Host`. */
  readonly baseUrl: string | undefined;
  /** The pages of browsers that may read the answers; none unless it is given. */
  readonly corsOrigins?: AllowedOrigins | undefined;
  /** Proxies that are believed who sent a request, by which scheme and to which host; none are unless they are given. */
  readonly trustedProxies?: BlockList | undefined;
  readonly logger: Logger;
  /** Told of each request as its answer ends; nobody is unless it is given. */
  readonly onResponse?: (request: CompletedRequest) => void;
  /** Told of each answer of 500 and 503 with the id of its request, and of each 401; nobody is unless they are given. */
  readonly onServiceError?: (serviceError: ServiceError, requestId: string) => void;
  readonly onUnauthorized?: () => void;
  /** How long nothing may move on a connection, in ms; 90 s by default. */
  readonly stallMs?: number;
  /** For how long connections on which nothing comes stay open when the server stops, in ms; they end at once unless it is given. */
  readonly quietMs?: number;
}

/** Builds the server; starting it is the caller's. */
export async function createServer(deps: ServerDependencies): Promise<Server> {
  const {
    collections,
    readModel,
    apiKeys,
    rateLimiter,
    lateMs,
    whyAway,
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
    // Bodies are compressed where their version is known, see answer.ts.
    compression: false,
    // Cookies are nothing to us, so malformed ones are no fault.
    routes: {
      response: { ranges: false },
      state: { parse: false, failAction: 'ignore' },
      timeout: { server: answerWithinMs },
    },
    debug: false,
  });
  requireKeys(server, { apiKeys, rateLimiter });
  await server.register([
    { plugin: errors, options: { logger, onResponse, onServiceError, onUnauthorized } },
    {
      plugin: readOnlyRoutes,
      options: {
        routes: [
          ...collections.map((collection) => listRoute(collection, readModel, { baseUrl, logger })),
          ...collections.map((collection) => changesRoute(collection, { readModel, apiKeys, baseUrl })),
          ...collections.map((collection) => versionsRoute(collection, readModel, baseUrl)),
          ...collections.map((collection) => recordRoute(collection, readModel)),
          ...healthRoutes(collections, readModel, { whyAway, setupWarnings }),
          openApiRoute(collections),
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
