// The data listener: a table of contents of its plugins and routes.

import { createServer as createListener } from 'node:http';
import type { BlockList } from 'node:net';
import { server as hapiServer, type Server } from '@hapi/hapi';
import type { Logger } from 'pino';
import type { ServedCollection } from '../shared/collections/define.ts';
import type { AllowedOrigins } from './answers/cross-origin.ts';
import { HeldRequests } from './answers/held-requests.ts';
import { type AnsweredRequest, tracedResponses } from './answers/traced-response.ts';
import { type KnownKeys, requireKeys } from './auth.ts';
import { connectionLimits } from './plugins/connection-limits.ts';
import { draining } from './plugins/draining.ts';
import { errors } from './plugins/errors.ts';
import { lastAnswers } from './plugins/last-answers.ts';
import { readOnlyRoutes } from './plugins/methods.ts';
import { overload } from './plugins/overload.ts';
import { preflights } from './plugins/preflights.ts';
import { waitingRequests } from './plugins/waiting-requests.ts';
import type { RateLimiter } from './rate-limit.ts';
import type { ReadModel } from './read/read-model.ts';
import type { Trouble } from './reads/trouble.ts';
import { forwardedRequests } from './requests/forwarded.ts';
import { changesRoute } from './routes/changes.ts';
import { docsRoutes, homeRoute } from './routes/docs.ts';
import { healthRoutes } from './routes/health.ts';
import { versionsRoute } from './routes/kept-versions.ts';
import { listRoute } from './routes/list.ts';
import { openApiRoute } from './routes/openapi.ts';
import { recordRoute } from './routes/record.ts';

/** What the server answers from, and where. */
export interface ServerDependencies {
  readonly collections: readonly ServedCollection[];
  readonly readModel: ReadModel;
  readonly apiKeys: KnownKeys;
  /** Without it, no key has a rate limit. */
  readonly rateLimiter?: RateLimiter;
  /** How many requests are worked on at once; 1,000 unless it is given. */
  readonly maxRequests?: number;
  /** How late the event loop may be before fewer are taken, in ms; 100 unless it is given. */
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
  readonly onAnswered?: (request: AnsweredRequest) => void;
  /** Told of each answer of 500 and 503 with the id of its request, and of each 401; nobody is unless they are given. */
  readonly onTrouble?: (trouble: Trouble, requestId: string) => void;
  readonly onUnauthorized?: () => void;
  /** For how long a client may take nothing of its answers, in ms; a minute unless it is given. */
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
    maxRequests = 1_000,
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
    onAnswered = () => undefined,
    onTrouble = () => undefined,
    onUnauthorized = () => undefined,
  } = deps;
  const server = hapiServer({
    host,
    port,
    // A missing Host header is answered in our own shape.
    listener: createListener({
      requireHostHeader: false,
      ...(trustedProxies && { IncomingMessage: forwardedRequests(trustedProxies) }),
      ServerResponse: tracedResponses(onAnswered, corsOrigins),
    }),
    // Bodies are compressed where their version is known, see answer.ts.
    compression: false,
    // Cookies are nothing to us, so malformed ones are no fault.
    routes: { response: { ranges: false }, state: { parse: false, failAction: 'ignore' } },
    debug: false,
  });
  const held = new HeldRequests(readModel.waits);
  requireKeys(server, { apiKeys, rateLimiter });
  await server.register([
    { plugin: errors, options: { logger, onAnswered, onTrouble, onUnauthorized } },
    { plugin: waitingRequests, options: { held } },
    { plugin: overload, options: { maxRequests, lateMs, onTrouble } },
    { plugin: connectionLimits, options: { stallMs, onTrouble } },
    { plugin: lastAnswers },
    { plugin: draining, options: { quietMs } },
    {
      plugin: readOnlyRoutes,
      options: {
        routes: [
          ...collections.map((collection) => listRoute(collection, readModel, { baseUrl, logger })),
          ...collections.map((collection) => changesRoute(collection, { readModel, apiKeys, held, baseUrl })),
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
  if (corsOrigins !== undefined) await server.register(preflights);
  return server;
}
