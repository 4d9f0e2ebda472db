// Starts a real API on a free port and an accepted key, and sends requests to it over real HTTP.

import { type AddressInfo, connect, type Socket } from 'node:net';
import { pino } from 'pino';
import { ApiKeys } from '../../api/auth.ts';
import { ClientVersions } from '../../api/client-versions.ts';
import { RateLimiter } from '../../api/rate-limit.ts';
import { LiveVersions } from '../../api/read/live-versions.ts';
import { ReadModel } from '../../api/read/read-model.ts';
import { Replica } from '../../api/read/replica.ts';
import { createServer, type ServerDependencies } from '../../api/server.ts';
import { importedCollections, servedCollections } from '../../shared/collections/collections.ts';
import {
  connectForListening,
  connectForServing,
  connectForWriting,
  type Redis,
} from '../../shared/redis/connections.ts';
import { type ApiKeyTerms, createApiKey, type MadeApiKey } from '../../shared/store/api-keys.ts';
import { expectAsDescribed } from './openapi.ts';
import { asUser } from './redis-users.ts';

/** A complete response. */
export interface ApiAnswer {
  readonly status: number;
  readonly headers: Headers;
  readonly text: string;
  /** Returns the body as JSON; the test names its shape. */
  json<Shape = unknown>(): Shape;
}

export interface TestApi {
  /** `http://127.0.0.1:<port>` */
  readonly origin: string;
  readonly port: number;
  /** A key that the API accepts. */
  readonly key: string;
  /** Sends a request with the key; headers of `init` replace it. Fails if /openapi.json does not describe the response. */
  get(path: string, init?: RequestInit): Promise<ApiAnswer>;
  /** Sends bytes unchanged on a separate connection, and returns the complete reply. */
  raw(request: string): Promise<string>;
  /** Returns whether the API still has its end of a client's connection. */
  isOpen(client: Socket): boolean;
  /** Returns how many connections were opened so far. */
  connections(): number;
  /** Returns how many requests arrived so far. */
  requests(): number;
  /** Returns how many bytes the API has read from a client's connection. */
  bytesRead(client: Socket): number;
  /** Damage in Redis that was reported to the API, as sentences. */
  readonly damage: readonly string[];
  /** Returns how many requests wait for a publication. */
  waiting(): number;
  /** Creates a key; the API knows it when this resolves. */
  makeKey(terms?: Partial<ApiKeyTerms>): Promise<MadeApiKey>;
  /** Makes the API ask Redis for changed keys now. */
  refreshKeys(): Promise<void>;
  /** Reasons why the API did not count requests against rate limits, as sentences. */
  readonly uncounted: readonly string[];
  stop(): Promise<void>;
}

/** Options that differ from those of the usual API. */
export type ApiOptions = Partial<
  Pick<
    ServerDependencies,
    | 'baseUrl'
    | 'corsOrigins'
    | 'trustedProxies'
    | 'logger'
    | 'stallMs'
    | 'quietMs'
    | 'lateMs'
    | 'onResponse'
    | 'onServiceError'
    | 'onUnauthorized'
  >
> & {
  readonly defaultRate?: string;
  readonly maxWaiting?: number;
  readonly cacheBytes?: number;
};

/** Starts an API on a Redis; the caller calls `stop`. */
export async function startApi({
  redisUrl,
  connectReplica = () => null,
  baseUrl,
  logger = pino({ level: 'silent' }),
  maxWaiting,
  cacheBytes,
  defaultRate,
  ...limits
}: ApiOptions & {
  redisUrl: string;
  /** Connects to a replica; `null`: the API reads from the primary. */
  connectReplica?: (onLost: () => void) => Redis | null;
}): Promise<TestApi> {
  const keyPrefix = 'medref';
  const writing = await connectForWriting(asUser(redisUrl, 'operator'));
  const { key } = await createApiKey(writing, keyPrefix, { client: 'tests', expiresAt: null, rate: null });
  writing.disconnect();

  const redis = connectForServing(asUser(redisUrl, 'api'));
  const listener = connectForListening(asUser(redisUrl, 'api'));
  await new Promise((resolve) => redis.once('ready', resolve));
  const replicaConnection = connectReplica(() => replica?.forget());
  const replica =
    replicaConnection === null ? undefined : new Replica({ master: redis, replica: replicaConnection });
  const damage: string[] = [];
  const uncounted: string[] = [];
  const onDamage = (message: string) => void damage.push(message);
  const live = new LiveVersions({
    ...{ redis, listener, replica, keyPrefix, sources: importedCollections, onDamage },
  });
  const readModel = new ReadModel({
    ...{
      redis: replica?.redis ?? redis,
      live,
      keyPrefix,
      onDamage,
      maxWaiting,
      cacheBytes,
    },
  });
  const apiKeys = new ApiKeys({ redis, keyPrefix, onDamage });
  const clientVersions = new ClientVersions({
    ...{ redis, keyPrefix, served: servedCollections },
    isKnown: (id) => apiKeys.hasId(id),
  });
  const server = await createServer({
    collections: servedCollections,
    readModel,
    apiKeys,
    clientVersions,
    rateLimiter: new RateLimiter({
      ...{ redis, keyPrefix, defaultRate },
      onUncounted: (message) => void uncounted.push(message),
    }),
    whyUnavailable: () => null,
    // No overload, even if the machine that runs the tests is busy.
    lateMs: Number.POSITIVE_INFINITY,
    host: '127.0.0.1',
    port: 0,
    baseUrl,
    logger,
    ...limits,
  });
  const ends = new Map<number | undefined, Socket>();
  let connections = 0;
  server.listener.on('connection', (socket: Socket) => {
    const { remotePort } = socket;
    ends.set(remotePort, socket);
    connections += 1;
    socket.once('close', () => ends.delete(remotePort));
  });
  let requests = 0;
  server.listener.prependListener('request', () => {
    requests += 1;
  });
  live.start();
  await apiKeys.start(listener);
  await server.start();
  const { port } = server.listener.address() as AddressInfo;
  const origin = `http://127.0.0.1:${port}`;
  return {
    origin,
    port,
    key,
    damage,
    waiting: () => readModel.waits.count,
    uncounted,
    refreshKeys: () => apiKeys.refresh(),
    async makeKey(terms = {}) {
      const writing = await connectForWriting(asUser(redisUrl, 'operator'));
      const made = await createApiKey(writing, keyPrefix, {
        ...{ client: 'pharmacy', expiresAt: null, rate: null },
        ...terms,
      });
      writing.disconnect();
      await apiKeys.refresh();
      return made;
    },
    connections: () => connections,
    requests: () => requests,
    isOpen: ({ localPort }) => ends.has(localPort),
    bytesRead: ({ localPort }) => ends.get(localPort)?.bytesRead ?? 0,
    async get(path, init = {}) {
      const headers = { authorization: `Bearer ${key}`, ...(init.headers as Record<string, string>) };
      const response = await fetch(`${origin}${path}`, { ...init, headers });
      const text = await response.text();
      expectAsDescribed(init.method ?? 'GET', path, {
        status: response.status,
        headers: response.headers,
        text,
      });
      return { status: response.status, headers: response.headers, text, json: () => JSON.parse(text) };
    },
    raw: (request) =>
      new Promise((resolve, reject) => {
        const chunks: Buffer[] = [];
        const socket = connect(port, '127.0.0.1', () => socket.write(request));
        socket.on('data', (chunk) => chunks.push(chunk));
        socket.on('end', () => resolve(Buffer.concat(chunks).toString()));
        socket.on('error', reject);
      }),
    async stop() {
      live.stop();
      await clientVersions.stop();
      apiKeys.stop();
      await server.stop({ timeout: 1_000 });
      redis.disconnect();
      listener.disconnect();
      replicaConnection?.disconnect();
    },
  };
}

/** Declares one API for a mocha suite, on the suite's Redis. It starts before the tests and stops after them. */
export function useApi(redis: () => { readonly url: string }, options: ApiOptions = {}): () => TestApi {
  let api: TestApi | undefined;
  before(async () => {
    api = await startApi({ redisUrl: redis().url, ...options });
  });
  after(async () => {
    await api?.stop();
  });
  return () => {
    if (api === undefined) throw new Error('The API of a suite is there inside its hooks and tests only.');
    return api;
  };
}
