// Requests documents by http(s), with retries and redirects. Only this file uses undici.

import { lookup as systemLookup } from 'node:dns';
import { STATUS_CODES } from 'node:http';
import { PassThrough, pipeline, type Readable } from 'node:stream';
import { setTimeout as sleep } from 'node:timers/promises';
import { type Dispatcher, EnvHttpProxyAgent, request } from 'undici';
import type { Access, UpstreamLimits } from './access.ts';
import {
  codeOf,
  isLinkLocal,
  maxUrlLength,
  namedUrl,
  quoted,
  refusingLinkLocal,
  seconds,
  slowAdvice,
  UpstreamError,
  urlText,
} from './access.ts';
import { documentOf, type Found, hasLinesExtension, type Validators } from './body.ts';

/** Sends requests to http(s) servers over connections that stay open until it is closed. */
export interface HttpClient {
  /** Requests a document. @throws UpstreamError, or the signal's reason */
  open(url: URL, validators: Validators | null): Promise<Found>;
  /** Sends one request and reads no body. @throws UpstreamError, or the signal's reason */
  head(url: URL): Promise<ResponseHead>;
  close(): Promise<void>;
}

/** A response without its body. */
export interface ResponseHead {
  readonly status: number;
  readonly header: (name: string) => string | null;
  /** The wait that upstream asks for before the next request, in ms. */
  readonly retryAfterMs: number;
}

/** Makes a client; it connects at its first request. */
export function createHttpClient(access: Access): HttpClient {
  const exchange: Exchange = { ...access, agent: agentOf(access) };
  return {
    open: (url, validators) => openWithRetries(url, validators, exchange),
    head: (url) => requestHead(url, exchange),
    close: () => exchange.agent.destroy(),
  };
}

interface Exchange extends Access {
  readonly agent: Dispatcher;
}

/**
 * Connects through the proxies that `HTTPS_PROXY`, `HTTP_PROXY` and `NO_PROXY` name, or directly. Certificates are always
 * checked, whatever `NODE_TLS_REJECT_UNAUTHORIZED` says. @throws UpstreamError if the URL of a proxy is invalid
 */
function agentOf({ limits, lookup = systemLookup, ca }: Access): Dispatcher {
  const tls = { timeout: limits.connectMs, rejectUnauthorized: true, ...(ca !== undefined && { ca }) };
  try {
    return new EnvHttpProxyAgent({
      bodyTimeout: limits.idleMs,
      headersTimeout: limits.headersMs,
      connect: { ...tls, lookup: refusingLinkLocal(lookup) },
      proxyTls: tls,
      requestTls: tls,
      proxyTunnel: false, // Many proxies allow tunnels only to port 443.
    });
  } catch {
    throw new UpstreamError(
      'HTTPS_PROXY or HTTP_PROXY is not the URL of a proxy, such as http://proxy.example:3128. Correct or unset it.',
    );
  }
}

/**
 * Retries here, not with undici's interceptor: it would resume a broken body with a range of a newer version, and its wait
 * ignores the signal.
 */
async function openWithRetries(url: URL, validators: Validators | null, exchange: Exchange): Promise<Found> {
  const { limits, signal } = exchange;
  const start = performance.now();
  for (let attempt = 1; ; attempt++) {
    try {
      return await open(url, validators, { ...exchange, deadline: start + limits.requestMs });
    } catch (error) {
      signal.throwIfAborted();
      if (!(error instanceof TemporaryError)) throw error;
      const spent = performance.now() - start;
      const wait = Math.max(error.retryAfterMs, backoff(attempt, limits));
      if (attempt === limits.attempts || wait >= limits.requestMs - spent) {
        throw finalError(error, { attempt, spent, limits });
      }
      await sleep(wait, undefined, { signal }).catch(() => signal.throwIfAborted());
    }
  }
}

function backoff(attempt: number, limits: UpstreamLimits): number {
  return limits.backoffMs * 2 ** (attempt - 1) * (0.5 + Math.random() / 2);
}

/** A failure that a retry may fix. */
class TemporaryError extends UpstreamError {
  readonly what: string;
  readonly advice: string;
  readonly retryAfterMs: number;

  constructor(what: string, advice: string, retryAfterMs = 0) {
    super(`${what}. ${advice}`);
    this.what = what;
    this.advice = advice;
    this.retryAfterMs = retryAfterMs;
  }
}

/** Returns the last failure, with the attempts before it. */
function finalError(
  { what, advice, retryAfterMs }: TemporaryError,
  { attempt, spent, limits }: { attempt: number; spent: number; limits: UpstreamLimits },
): UpstreamError {
  const soFar = attempt === 1 ? '' : `, after ${attempt} attempts in ${seconds(spent)}`;
  const left = Math.max(limits.requestMs - spent, 0);
  if (attempt === limits.attempts || retryAfterMs < left)
    return new UpstreamError(`${what}${soFar}. ${advice}`);
  return new UpstreamError(
    `${what}${soFar}, and asks for a wait of ${seconds(retryAfterMs)} (Retry-After), longer than the ` +
      `${seconds(left)} left for this request. Import again later.`,
  );
}

/** One attempt, with its deadline by `performance.now()`. */
interface Attempt extends Exchange {
  readonly deadline: number;
}

async function open(url: URL, validators: Validators | null, attempt: Attempt): Promise<Found> {
  const { limits, signal, token } = attempt;
  const found = await follow(url, attempt, {
    accept: acceptOf(url),
    'accept-encoding': 'gzip',
    'user-agent': 'medref',
    ...(token && { authorization: `Bearer ${token}` }),
    ...(validators?.etag && { 'if-none-match': validators.etag }),
    ...(validators?.lastModified && { 'if-modified-since': validators.lastModified }),
  });
  const { response, header } = found;
  if (response.statusCode === 304 && validators) {
    drain(response.body);
    return { notModified: true, version: header('medref-version') };
  }
  const lines = hasLinesExtension(url) || hasLinesExtension(found.url) || isLinesType(header('content-type'));
  let raw: Readable;
  try {
    checkStatus(found, token !== undefined);
    raw = bodyOf(found, lines);
  } catch (error) {
    drain(response.body);
    throw error;
  }
  const contentLength = header('content-length');
  const length = contentLength === null ? null : Number(contentLength);
  return documentOf({ url: found.url, raw, length, limits, signal, lines, header });
}

async function requestHead(url: URL, exchange: Exchange): Promise<ResponseHead> {
  const attempt = { ...exchange, deadline: performance.now() + exchange.limits.requestMs };
  const { response, header } = await follow(url, attempt, {
    accept: 'application/json',
    'user-agent': 'medref',
    ...(exchange.token && { authorization: `Bearer ${exchange.token}` }),
  });
  drain(response.body);
  return { status: response.statusCode, header, retryAfterMs: retryAfterMs(header('retry-after')) };
}

/** Prefers NDJSON, which is one consistent version. A URL with parameters gets pages. */
function acceptOf({ search }: URL): string {
  const types = ['application/x-ndjson', 'application/json'];
  if (search !== '') types.reverse();
  return `${types[0]}, ${types[1]};q=0.9, */*;q=0.1`;
}

/** A response and its URL. */
interface Answered {
  readonly url: URL;
  readonly response: Dispatcher.ResponseData;
  readonly header: (name: string) => string | null;
}

/**
 * Sends a request and follows redirects. undici's interceptor reads the body of a redirect to its end, and checks neither the
 * scheme nor link-local addresses.
 */
async function follow(start: URL, attempt: Attempt, startHeaders: Record<string, string>): Promise<Answered> {
  let url = start;
  let headers = startHeaders;
  for (let redirects = 0; ; redirects++) {
    if (isLinkLocal(url.hostname) && url.hostname !== start.hostname) throw linkLocal(urlText(url));
    const response = await send(url, headers, attempt);
    const header = (name: string) => String(response.headers[name] ?? '') || null;
    if (![301, 302, 303, 307, 308].includes(response.statusCode)) return { url, response, header };
    drain(response.body);
    if (redirects === attempt.limits.redirects) {
      throw new UpstreamError(
        `${urlText(start)} redirects more than ${redirects} times, possibly in a loop. Check the URL.`,
      );
    }
    const target = redirectTarget(url, header('location'));
    // The token is only for the operator's origin; a redirect back there does not get it again.
    if (target.origin !== url.origin) {
      const { authorization: _, ...rest } = headers;
      headers = rest;
    }
    url = target;
  }
}

function redirectTarget(url: URL, location: string | null): URL {
  const target = location === null ? null : namedUrl(location, url);
  if (target === null) {
    throw new UpstreamError(
      `${urlText(url)} redirects to something that is not a URL of at most ${maxUrlLength} characters. Check the URL.`,
    );
  }
  if (target.protocol !== 'http:' && target.protocol !== 'https:') {
    throw new UpstreamError(
      `${urlText(url)} redirects to a ${quoted(target.protocol)} URL; only http: and https: are followed.`,
    );
  }
  return target;
}

async function send(
  url: URL,
  headers: Record<string, string>,
  { limits, agent, signal, deadline }: Attempt,
): Promise<Dispatcher.ResponseData> {
  signal.throwIfAborted();
  const timeout = new AbortController();
  const timer = setTimeout(() => timeout.abort(), Math.max(deadline - performance.now(), 0));
  try {
    return await request(url, {
      dispatcher: agent,
      headers,
      signal: AbortSignal.any([signal, timeout.signal]),
    });
  } catch (error) {
    signal.throwIfAborted();
    if (timeout.signal.aborted) {
      throw new TemporaryError(
        `${urlText(url)} did not respond within ${seconds(limits.requestMs)}`,
        slowAdvice,
      );
    }
    throw requestFailure(urlText(url), codeOf(error));
  } finally {
    clearTimeout(timer);
  }
}

/** Drops an unread body to free its socket. */
function drain(body: Dispatcher.ResponseData['body']): void {
  body.on('error', () => {});
  body.dump({ limit: 64 * 1024, signal: AbortSignal.timeout(1000) }).catch(() => {});
}

const running = 'Check that the upstream is running and that its URL is right.';
const network = 'Check the URL and the network of this machine.';

/** The failure and the advice, by error codes, for temporary failures. */
const temporaryFailures: readonly [codes: RegExp, what: string, advice: string][] = [
  [/^ECONNREFUSED$/, 'refused the connection', running],
  [/^(ECONNRESET|EPIPE|UND_ERR_SOCKET)$/, 'closed the connection before responding', running],
  [/^(UND_ERR_CONNECT_TIMEOUT|ETIMEDOUT)$/, 'did not accept a connection in time', running],
  [/^UND_ERR_HEADERS_TIMEOUT$/, 'did not start to respond in time', slowAdvice],
  [/^ENOTFOUND$/, 'has an unknown host name', network],
  [/^EAI_AGAIN$/, 'has a host name that cannot be resolved now', network],
  [/^(EHOSTUNREACH|ENETUNREACH)$/, 'cannot be reached over the network', network],
  [
    /^EMFILE$/,
    'was not requested: this process has reached its limit of open files (EMFILE)',
    'Raise it with "ulimit -n", or LimitNOFILE= of its systemd unit.',
  ],
];

/** The same for other failures; Node's documentation of `tls` lists those of certificates. */
const otherFailures: readonly [codes: RegExp, what: string, advice: string][] = [
  [
    /^UND_ERR_(ABORTED|INVALID_ARG|PRX_TLS)$/,
    'cannot be reached: the proxy of HTTPS_PROXY or HTTP_PROXY refused',
    'Check its URL and its credentials.',
  ],
  [/^(HPE_|HTTPParserError|UND_ERR_HEADERS_OVERFLOW)/, 'did not send an HTTP response', 'Check the URL.'],
  [/^ERR_SSL_/, 'does not speak TLS', 'Check whether its URL begins with http: or https:.'],
  [/^CERT_HAS_EXPIRED$/, 'has an expired certificate', 'Its operator has to renew it.'],
  [/^CERT_NOT_YET_VALID$/, 'has a certificate that is not valid yet', 'Check the clock of this machine.'],
  [
    /CERT|CRL|^UNABLE_TO_|^(INVALID_CA|INVALID_PURPOSE|HOSTNAME_MISMATCH|PATH_LENGTH_EXCEEDED)$/,
    'has an invalid certificate',
    'Renew it, or add its issuer to NODE_EXTRA_CA_CERTS.',
  ],
  [/^/, 'could not be requested', 'Check the URL.'],
];

function requestFailure(name: string, code: string): UpstreamError {
  if (code === 'ERR_LINK_LOCAL') return linkLocal(name);
  const temporary = temporaryFailures.find(([codes]) => codes.test(code));
  if (temporary) return new TemporaryError(`${name} ${temporary[1]}`, temporary[2]);
  const [, what, advice] = otherFailures.find(([codes]) => codes.test(code)) ?? [];
  return new UpstreamError(`${name} ${what} (${code}). ${advice}`);
}

function linkLocal(name: string): UpstreamError {
  return new UpstreamError(
    `${name} has a link-local address, at which clouds serve secrets of a machine. Names and redirects may not lead there. ` +
      'Check the URL.',
  );
}

const sentToken =
  'medref sent the token of its setting, which may have expired: ask the operator of upstream, change it, and restart the importer.';
const noToken = 'medref sent no token: set UPSTREAM_TOKEN or the _TOKEN setting of the collection.';

/** @param isAuthorized whether the request had a token */
function checkStatus(
  { url, response: { statusCode: status }, header }: Answered,
  isAuthorized: boolean,
): void {
  if (status === 200) return;
  const what = `${urlText(url)} responded with ${status} ${STATUS_CODES[status] ?? ''}`.trimEnd();
  if (status >= 500 || status === 429 || status === 408) {
    throw new TemporaryError(what, slowAdvice, retryAfterMs(header('retry-after')));
  }
  if (status === 401 || status === 403) {
    throw new UpstreamError(`${what}. ${isAuthorized ? sentToken : noToken}`);
  }
  if (status >= 400) throw new UpstreamError(`${what}. Check the URL.`);
  throw new UpstreamError(`${what}, but only 200 OK carries a list. Check the URL.`);
}

/** The longest wait in seconds (RFC 9111, section 1.2.2). */
const mostSeconds = 2 ** 31;

/** Returns the wait of `Retry-After`, in ms, from seconds or a date; 0 if it is absent or invalid. */
function retryAfterMs(retryAfter: string | null): number {
  if (retryAfter === null) return 0;
  if (/^\d+$/.test(retryAfter)) return Math.min(Number(retryAfter), mostSeconds) * 1000;
  const date = Date.parse(retryAfter);
  return Number.isNaN(date) ? 0 : Math.max(date - Date.now(), 0);
}

/** How much of a body without a known end is read ahead. */
const readAheadBytes = 256 * 1024 ** 2;

/**
 * Prepares a body without Content-Length or chunks. undici treats a reset of the connection as its end, so JSON Lines are
 * refused: truncated, they look complete. Other lists are read ahead, because undici crashes if such a connection ends while
 * its body is paused.
 */
function bodyOf({ url, response, header }: Answered, lines: boolean): Readable {
  const isChunked = /\bchunked\s*$/i.test(header('transfer-encoding') ?? '');
  if (isChunked || header('content-length') !== null) return response.body;
  if (lines) {
    throw new UpstreamError(
      `${urlText(url)} sends JSON Lines without Content-Length or chunks, so a truncated list may look complete. ` +
        'Change the upstream, or put a reverse proxy before it that sends chunks.',
    );
  }
  const ahead = new PassThrough({ highWaterMark: readAheadBytes });
  pipeline(response.body, ahead, () => {});
  return ahead;
}

function isLinesType(contentType: string | null): boolean {
  return /^\s*(application|text)\/(x-)?(ndjson|jsonl|jsonlines|json-lines)\s*(;|$)/i.test(contentType ?? '');
}
