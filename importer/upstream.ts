// In: the URL of a document, http(s) or file. Out: its decoded bytes, or one plain sentence that says why there are none.
// Every limit on the upstream's time and size is kept here.

import { open, stat } from 'node:fs/promises';
import { STATUS_CODES } from 'node:http';
import { unescape as percentDecoded } from 'node:querystring';
import { addAbortSignal, pipeline, type Readable } from 'node:stream';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { createGunzip } from 'node:zlib';
import { Agent, type Dispatcher, request } from 'undici';

/** A failure of the upstream, told as one plain sentence; the import ends with it as its reason. */
export class UpstreamError extends Error {
  override name = 'UpstreamError';
}

/** What the importer allows an upstream. */
export interface UpstreamLimits {
  /** How often a document is asked for, the first time included. */
  readonly tries: number;
  /** From the first try to the headers of the answer: waits, timeouts, redirects, all together. */
  readonly requestMs: number;
  /** Until a connection stands. */
  readonly connectMs: number;
  /** From the request to the headers of its answer. */
  readonly headersMs: number;
  /** Wait before the second try; doubled for each further one, less a random part. */
  readonly backoffMs: number;
  /** Redirects followed in one try. */
  readonly redirects: number;
  /** Silence in the middle of a body. */
  readonly idleMs: number;
  /** Mean rate of a body below which it is given up, over {@link slowMs} of waiting for it. */
  readonly slowBytesPerSecond: number;
  /** Time spent waiting for the body, backpressure not counted, after which its rate is judged. */
  readonly slowMs: number;
  /** Size of a decoded body. */
  readonly bodyBytes: number;
  /** Times that a body may be compressed. */
  readonly gzipLayers: number;
}

/** The limits that hold outside of tests. */
export const UPSTREAM_LIMITS: UpstreamLimits = Object.freeze({
  tries: 4,
  requestMs: 60_000,
  connectMs: 10_000,
  headersMs: 15_000,
  backoffMs: 500,
  redirects: 5,
  idleMs: 30_000,
  slowBytesPerSecond: 1024,
  slowMs: 60_000,
  bodyBytes: 4 * 1024 ** 3,
  gzipLayers: 2,
});

/** What lets a later import ask whether a document has changed. */
export interface Validators {
  readonly etag: string | null;
  readonly lastModified: string | null;
}

/** An upstream document whose body has yet to be read. */
export interface UpstreamDocument {
  /** Where the document was found, after redirects. */
  readonly url: URL;
  /** Whether it is JSON Lines, by its extension or its content type. */
  readonly lines: boolean;
  /** The `Medref-Version` header. */
  readonly version: string | null;
  readonly validators: Validators;
  /** The decoded bytes, to be read once; every failure in them is an {@link UpstreamError}. */
  readonly body: AsyncIterable<Uint8Array>;
  /** Gives up what is not yet read; to be called at the end in any case. */
  close(): void;
}

/** How to reach the upstream. */
export interface UpstreamOptions {
  /** Sent as a Bearer credential, never to another origin than that of the URL asked for. */
  readonly token?: string | undefined;
  /** Ends whatever is going on, with the signal's reason. */
  readonly signal?: AbortSignal | undefined;
  /** Tests make limits smaller. */
  readonly limits?: Partial<UpstreamLimits> | undefined;
}

/** The connection to an upstream, for the length of one import. */
export interface Upstream {
  /**
   * Asks for a document.
   * @param validators of the last version; with them an upstream may answer that nothing has changed.
   * @returns the document, or null where it has not changed. Throws {@link UpstreamError}, or the signal's reason.
   */
  open(url: URL, validators?: Validators | null): Promise<UpstreamDocument | null>;
  /** Ends all connections. */
  close(): Promise<void>;
}

/** Makes the connection to an upstream; nothing is sent before {@link Upstream.open}, whoever made it closes it. */
export function createUpstream(options: UpstreamOptions = {}): Upstream {
  const limits = { ...UPSTREAM_LIMITS, ...options.limits };
  const agent = new Agent({ connect: { timeout: limits.connectMs }, bodyTimeout: 0 });
  const access: Access = {
    limits,
    agent,
    token: options.token,
    signal: options.signal ?? new AbortController().signal,
  };
  return {
    open: (url, validators = null) =>
      url.protocol === 'file:' ? openFile(url, access) : openHttp(url, validators, access),
    close: () => agent.destroy(),
  };
}

/** A URL as reasons name it: without credentials and without the query, which may hold a secret. */
export function nameOf(url: URL): string {
  return `${url.protocol}//${url.host}${url.pathname}`;
}

interface Access {
  limits: UpstreamLimits;
  agent: Agent;
  token: string | undefined;
  signal: AbortSignal;
}

/** A failure that may pass, so that the request is worth another try. */
class PassingFailure extends UpstreamError {
  readonly what: string;
  readonly advice: string;
  /** How long the upstream asks to wait before the next try. */
  readonly retryAfterMs: number;

  constructor(what: string, advice: string, retryAfterMs = 0) {
    super(`${what}. ${advice}`);
    this.what = what;
    this.advice = advice;
    this.retryAfterMs = retryAfterMs;
  }
}

// ---- Files

async function openFile(url: URL, { limits, signal }: Access): Promise<UpstreamDocument> {
  signal.throwIfAborted();
  const name = nameOf(url);
  const file = await openRegularFile(url, name);
  const raw = file.createReadStream({ highWaterMark: 64 * 1024 });
  return documentOf({ url, raw, limits, signal, lines: hasLinesExtension(url), header: () => null });
}

async function openRegularFile(url: URL, name: string) {
  try {
    const path = fileURLToPath(url);
    // Asked before opening, because opening a named pipe waits for its writer.
    if ((await stat(path)).isFile()) return await open(path);
  } catch (error) {
    throw new UpstreamError(
      `${name} ${FILE_FAILURES[codeOf(error)] ?? `cannot be read (${codeOf(error)}). Check the path`}.`,
    );
  }
  throw new UpstreamError(`${name} is not a file. Name the file that holds the list.`);
}

const FILE_FAILURES: Record<string, string> = {
  ENOENT: 'does not exist. Check the path',
  ENOTDIR: 'does not exist. Check the path',
  EACCES: 'may not be read by this user. Check its permissions',
  EPERM: 'may not be read by this user. Check its permissions',
  ERR_INVALID_FILE_URL_HOST: 'names a host. A file on this machine is written file:///path',
};

// ---- Requests

async function openHttp(
  url: URL,
  validators: Validators | null,
  access: Access,
): Promise<UpstreamDocument | null> {
  const { limits, signal } = access;
  const start = performance.now();
  for (let tries = 1; ; tries++) {
    try {
      return await tryOnce({ url, validators, access, deadline: start + limits.requestMs });
    } catch (error) {
      signal.throwIfAborted();
      if (!(error instanceof PassingFailure)) throw error;
      await waitForNextTry(error, { tries, start, access });
    }
  }
}

/** Waits before the next try, or throws the failure's last word where there is no next try. */
async function waitForNextTry(
  failure: PassingFailure,
  { tries, start, access }: { tries: number; start: number; access: Access },
): Promise<void> {
  const { limits, signal } = access;
  const spent = performance.now() - start;
  const left = limits.requestMs - spent;
  const wait = Math.max(failure.retryAfterMs, backoff(tries, limits));
  if (tries < limits.tries && wait < left) {
    await sleep(wait, undefined, { signal }).catch(() => signal.throwIfAborted());
    return;
  }
  const soFar = tries === 1 ? '' : `, after ${tries} tries in ${seconds(spent)}`;
  if (tries < limits.tries && failure.retryAfterMs >= left) {
    throw new UpstreamError(
      `${failure.what}${soFar}, and asks to wait ${seconds(failure.retryAfterMs)} (Retry-After), longer than the ` +
        `${seconds(Math.max(left, 0))} that are left for this request. Import again later.`,
    );
  }
  throw new UpstreamError(`${failure.what}${soFar}. ${failure.advice}`);
}

function backoff(tries: number, limits: UpstreamLimits): number {
  return limits.backoffMs * 2 ** (tries - 1) * (0.5 + Math.random() / 2);
}

interface Try {
  url: URL;
  validators: Validators | null;
  access: Access;
  deadline: number;
}

async function tryOnce({ url, validators, access, deadline }: Try): Promise<UpstreamDocument | null> {
  const { limits, signal } = access;
  const headers: Record<string, string> = {
    accept: 'application/json, application/x-ndjson;q=0.9, */*;q=0.1',
    'accept-encoding': 'gzip',
    'user-agent': 'medref',
    ...authorization(url, access.token),
    ...(validators?.etag && { 'if-none-match': validators.etag }),
    ...(validators?.lastModified && { 'if-modified-since': validators.lastModified }),
  };
  const found = await follow(url, headers, { access, deadline });
  const { response } = found;
  const header = (name: string) => headerOf(response, name);
  try {
    if (response.statusCode === 304 && validators) return discarded(response.body, null);
    checkStatus(nameOf(found.url), response.statusCode, header('retry-after'));
    checkEncoding(nameOf(found.url), header('content-encoding'));
  } catch (error) {
    throw discarded(response.body, error);
  }
  const lines = hasLinesExtension(url) || hasLinesExtension(found.url) || isLinesType(header('content-type'));
  return documentOf({ url: found.url, raw: response.body, limits, signal, lines, header });
}

function headerOf(response: Dispatcher.ResponseData, name: string): string | null {
  return String(response.headers[name] ?? '') || null;
}

/** Sends the request, and again to where it is redirected. */
async function follow(
  start: URL,
  startHeaders: Record<string, string>,
  { access, deadline }: { access: Access; deadline: number },
): Promise<{ url: URL; response: Dispatcher.ResponseData }> {
  let url = start;
  let headers = startHeaders;
  for (let redirects = 0; ; redirects++) {
    const response = await send(url, headers, { access, deadline });
    if (![301, 302, 303, 307, 308].includes(response.statusCode)) return { url, response };
    discarded(response.body, null);
    if (redirects === access.limits.redirects) {
      throw new UpstreamError(
        `${nameOf(start)} redirects more than ${redirects} times, perhaps in a loop. Check the URL.`,
      );
    }
    const target = redirectTarget(url, headerOf(response, 'location'));
    if (target.origin !== url.origin) {
      const { authorization: _, ...rest } = headers;
      headers = rest;
    }
    url = target;
  }
}

function redirectTarget(url: URL, location: string | null): URL {
  if (location === null || !URL.canParse(location, url.href)) {
    throw new UpstreamError(`${nameOf(url)} redirects to something that is not a URL. Check the URL.`);
  }
  const target = new URL(location, url);
  if (target.protocol !== 'http:' && target.protocol !== 'https:') {
    throw new UpstreamError(
      `${nameOf(url)} redirects to a ${target.protocol} URL; only http: and https: are followed.`,
    );
  }
  return target;
}

async function send(
  url: URL,
  headers: Record<string, string>,
  { access, deadline }: { access: Access; deadline: number },
): Promise<Dispatcher.ResponseData> {
  const { limits, agent, signal } = access;
  const stop = new AbortController();
  const abort = () => stop.abort(signal.reason);
  const late = () =>
    stop.abort(new PassingFailure(`${nameOf(url)} did not answer within ${seconds(limits.requestMs)}`, SLOW));
  const timer = setTimeout(late, Math.max(deadline - performance.now(), 0));
  signal.addEventListener('abort', abort);
  try {
    signal.throwIfAborted();
    return await request(url, {
      dispatcher: agent,
      headers,
      headersTimeout: limits.headersMs,
      signal: stop.signal,
    });
  } catch (error) {
    if (signal.aborted || error instanceof UpstreamError) throw error;
    throw requestFailure(nameOf(url), codeOf(error), limits);
  } finally {
    clearTimeout(timer);
    signal.removeEventListener('abort', abort);
  }
}

function authorization(url: URL, token: string | undefined): Record<string, string> {
  if (token) return { authorization: `Bearer ${token}` };
  if (url.username === '' && url.password === '') return {};
  const credentials = `${percentDecoded(url.username)}:${percentDecoded(url.password)}`;
  return { authorization: `Basic ${Buffer.from(credentials).toString('base64')}` };
}

/** Lets go of an unread body, so that its socket is free again; gives back the value to return or throw. */
function discarded<T>(body: Dispatcher.ResponseData['body'], value: T): T {
  body.on('error', () => {});
  body.dump({ limit: 64 * 1024, signal: AbortSignal.timeout(1000) }).catch(() => {});
  return value;
}

const RUNNING = 'Check that the upstream is running and that its URL is right.';
const SLOW = 'Ask who runs the upstream, or import again later.';
const NETWORK = 'Check the URL and the network of this machine.';

const REQUEST_FAILURES: Record<string, [what: string, advice: string]> = {
  ECONNREFUSED: ['refused the connection', RUNNING],
  ECONNRESET: ['cut the connection before it answered', RUNNING],
  EPIPE: ['cut the connection before it answered', RUNNING],
  UND_ERR_SOCKET: ['cut the connection before it answered', RUNNING],
  ENOTFOUND: ['has a host name that is not known', NETWORK],
  EAI_AGAIN: ['has a host name that cannot be looked up now', NETWORK],
  EHOSTUNREACH: ['cannot be reached over the network', NETWORK],
  ENETUNREACH: ['cannot be reached over the network', NETWORK],
  ETIMEDOUT: ['did not accept a connection in time', RUNNING],
};

function requestFailure(name: string, code: string, limits: UpstreamLimits): UpstreamError {
  if (code === 'UND_ERR_CONNECT_TIMEOUT') {
    return new PassingFailure(
      `${name} did not accept a connection within ${seconds(limits.connectMs)}`,
      RUNNING,
    );
  }
  if (code === 'UND_ERR_HEADERS_TIMEOUT') {
    return new PassingFailure(`${name} did not begin to answer within ${seconds(limits.headersMs)}`, SLOW);
  }
  const failure = REQUEST_FAILURES[code];
  if (failure) return new PassingFailure(`${name} ${failure[0]}`, failure[1]);
  if (code.startsWith('HPE_') || code === 'HTTPParserError' || code === 'UND_ERR_HEADERS_OVERFLOW') {
    return new UpstreamError(`${name} answered with something that is not HTTP (${code}). Check the URL.`);
  }
  return new UpstreamError(
    `${name} could not be asked (${code}). Check the URL, and the certificate of an https: URL.`,
  );
}

function checkStatus(name: string, status: number, retryAfter: string | null): void {
  if (status === 200) return;
  const what = `${name} answered ${status} ${STATUS_CODES[status] ?? ''}`.trimEnd();
  if (status >= 500 || status === 429 || status === 408) {
    throw new PassingFailure(what, SLOW, waitAsked(retryAfter));
  }
  if (status === 401 || status === 403) {
    throw new UpstreamError(`${what}. Check the token that is sent to it.`);
  }
  if (status >= 400) throw new UpstreamError(`${what}. Check the URL.`);
  throw new UpstreamError(`${what}, where only 200 OK carries a list. Check the URL.`);
}

/** The milliseconds that `Retry-After` asks for, in seconds or as a date; 0 where it is absent or makes no sense. */
function waitAsked(retryAfter: string | null): number {
  if (retryAfter === null) return 0;
  if (/^\d+$/.test(retryAfter)) return Number(retryAfter) * 1000;
  const date = Date.parse(retryAfter);
  return Number.isNaN(date) ? 0 : Math.max(date - Date.now(), 0);
}

function checkEncoding(name: string, encoding: string | null): void {
  const unknown = (encoding ?? '')
    .split(',')
    .find((coding) => !/^\s*(gzip|x-gzip|identity|)\s*$/i.test(coding));
  if (unknown !== undefined) {
    throw new UpstreamError(
      `${name} sends its body encoded as ${unknown.trim()}, where only gzip was asked for.`,
    );
  }
}

function hasLinesExtension(url: URL): boolean {
  return /\.(jsonl|ndjson)(\.gz)?$/i.test(url.pathname);
}

function isLinesType(contentType: string | null): boolean {
  return /^\s*(application|text)\/(x-)?(ndjson|jsonl|jsonlines|json-lines)\s*(;|$)/i.test(contentType ?? '');
}

// ---- Bodies

interface Source {
  url: URL;
  raw: Readable;
  limits: UpstreamLimits;
  signal: AbortSignal;
  lines: boolean;
  header(name: string): string | null;
}

function documentOf(source: Source): UpstreamDocument {
  const { url, raw, signal, lines, header } = source;
  // What goes wrong is told to whoever reads; without a reader it concerns nobody.
  addAbortSignal(signal, raw).on('error', () => {});
  return {
    url,
    lines,
    version: header('medref-version'),
    validators: { etag: header('etag'), lastModified: header('last-modified') },
    body: bounded(unzipped(watched(source), nameOf(url), source.limits.gzipLayers), source),
    close: () => raw.destroy(),
  };
}

/** The body as it arrives, given up when it is silent or drips. */
async function* watched({ url, raw, limits, signal }: Source): AsyncGenerator<Uint8Array> {
  const name = nameOf(url);
  const chunks = raw[Symbol.asyncIterator]();
  let waited = 0;
  let arrived = 0;
  for (;;) {
    const start = performance.now();
    const silence = new UpstreamError(
      `${name} stopped in the middle of its body for ${seconds(limits.idleMs)}. ${SLOW}`,
    );
    const idle = setTimeout(() => raw.destroy(silence), limits.idleMs);
    const next = await chunks
      .next()
      .catch((error: unknown) => {
        signal.throwIfAborted();
        throw bodyFailure(name, error);
      })
      .finally(() => clearTimeout(idle));
    if (next.done) return;
    waited += performance.now() - start;
    arrived += next.value.length;
    if (waited >= limits.slowMs) {
      if (arrived < (limits.slowBytesPerSecond * waited) / 1000) {
        throw new UpstreamError(
          `${name} sends its body too slowly: ${arrived} bytes in ${seconds(waited)}. ${SLOW}`,
        );
      }
      waited = 0;
      arrived = 0;
    }
    yield next.value;
  }
}

function bodyFailure(name: string, error: unknown): UpstreamError {
  if (error instanceof UpstreamError) return error;
  const code = codeOf(error);
  if (code === 'UND_ERR_RES_CONTENT_LENGTH_MISMATCH') {
    return new UpstreamError(`${name} sent a body of another length than its Content-Length says. ${SLOW}`);
  }
  if (['UND_ERR_SOCKET', 'ECONNRESET', 'EPIPE', 'ETIMEDOUT', 'HPE_INVALID_EOF_STATE'].includes(code)) {
    return new UpstreamError(
      `${name} is cut off: the connection ended before the body did. Import again later.`,
    );
  }
  return new UpstreamError(`${name} could not be read to its end (${code}). Import again later.`);
}

/** Inflates what begins like gzip, whatever its headers and name say. */
async function* unzipped(
  source: AsyncIterable<Uint8Array>,
  name: string,
  layers: number,
): AsyncGenerator<Uint8Array> {
  const chunks = source[Symbol.asyncIterator]();
  let head = Buffer.alloc(0);
  while (head.length < 2) {
    const next = await chunks.next();
    if (next.done) break;
    head = Buffer.concat([head, next.value]);
  }
  const whole = rejoined(head, chunks);
  if (layers === 0 || head[0] !== 0x1f || head[1] !== 0x8b) yield* whole;
  else yield* unzipped(inflated(whole, name), name, layers - 1);
}

async function* rejoined(head: Uint8Array, rest: AsyncIterator<Uint8Array>): AsyncGenerator<Uint8Array> {
  if (head.length > 0) yield head;
  yield* { [Symbol.asyncIterator]: () => rest };
}

async function* inflated(source: AsyncIterable<Uint8Array>, name: string): AsyncGenerator<Uint8Array> {
  const gunzip = createGunzip({ chunkSize: 64 * 1024 });
  // Its failures reach the reader of gunzip, which pipeline destroys with them.
  pipeline(source, gunzip, () => {});
  try {
    yield* gunzip;
  } catch (error) {
    const code = codeOf(error);
    if (code === 'Z_BUF_ERROR') {
      throw new UpstreamError(`${name} is cut off: its gzip data ends too early. Import again later.`);
    }
    if (code.startsWith('Z_'))
      throw new UpstreamError(`${name} holds corrupt gzip data. Ask who runs the upstream.`);
    throw error;
  }
}

async function* bounded(
  source: AsyncIterable<Uint8Array>,
  { url, limits }: Source,
): AsyncGenerator<Uint8Array> {
  let size = 0;
  for await (const chunk of source) {
    size += chunk.length;
    if (size > limits.bodyBytes) {
      throw new UpstreamError(
        `${nameOf(url)} is larger than ${limits.bodyBytes} bytes, the most that is read.`,
      );
    }
    yield chunk;
  }
}

function codeOf(error: unknown): string {
  return (error as { code?: string } | null)?.code ?? (error instanceof Error ? error.name : 'unknown');
}

function seconds(milliseconds: number): string {
  return `${Math.round(milliseconds / 100) / 10} s`;
}
