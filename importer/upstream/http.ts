// Requests documents by http(s), with retries and redirects; the only file that knows undici.

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

/** Sends requests to http(s) servers, over connections that it keeps until it is closed. */
export interface HttpClient {
  /** Requests a document. @throws UpstreamError, or the signal's reason */
  open(url: URL, validators: Validators | null): Promise<Found>;
  /** Requests a URL once and reads no body. @throws UpstreamError, or the signal's reason */
  head(url: URL): Promise<ResponseHead>;
  close(): Promise<void>;
}

/** A response without its body. */
export interface ResponseHead {
  readonly status: number;
  readonly header: (name: string) => string | null;
  /** How long upstream asks to wait before the next request, in ms. */
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
 * Connects through the proxies that `HTTPS_PROXY`, `HTTP_PROXY` and `NO_PROXY` name, or directly. Certificates are
 * checked, whatever `NODE_TLS_REJECT_UNAUTHORIZED` says. @throws UpstreamError if a proxy is not the URL of one
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
      proxyTunnel: false, // Many proxies tunnel to port 443 alone.
    });
  } catch {
    throw new UpstreamError(
      'HTTPS_PROXY or HTTP_PROXY is not the URL of a proxy, such as http://proxy.example:3128. Set it to one, or to nothing.',
    );
  }
}

/**
 * Retries here and not by undici's interceptor, which would resume a broken body by a range of another version, and
 * does not end its wait with the signal.
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

/** A failure that may pass, so that another attempt is worth it. */
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

/** Returns the last failure, with what was tried before it. */
function finalError(
  { what, advice, retryAfterMs }: TemporaryError,
  { attempt, spent, limits }: { attempt: number; spent: number; limits: UpstreamLimits },
): UpstreamError {
  const soFar = attempt === 1 ? '' : `, after ${attempt} attempts in ${seconds(spent)}`;
  const left = Math.max(limits.requestMs - spent, 0);
  if (attempt === limits.attempts || retryAfterMs < left)
    return new UpstreamError(`${what}${soFar}. ${advice}`);
  return new UpstreamError(
    `${what}${soFar}, and asks to wait ${seconds(retryAfterMs)} (Retry-After), longer than the ` +
      `${seconds(left)} that are left for this request. Import again later.`,
  );
}

/** One attempt, which ends at a time of `performance.now()`. */
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
    checkStatus(found);
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

/** Prefers lines, which are a list as it was at one moment; a URL with parameters gets pages, as a medref sends them. */
function acceptOf({ search }: URL): string {
  const types = ['application/x-ndjson', 'application/json'];
  if (search !== '') types.reverse();
  return `${types[0]}, ${types[1]};q=0.9, */*;q=0.1`;
}

/** A response, and the URL that it is from. */
interface Answered {
  readonly url: URL;
  readonly response: Dispatcher.ResponseData;
  readonly header: (name: string) => string | null;
}

/**
 * Sends a request, and again to where it is redirected. Not by undici's interceptor, which reads the body of a redirect
 * to its end and checks neither the scheme nor link-local addresses.
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
        `${urlText(start)} redirects more than ${redirects} times, perhaps in a loop. Check the URL.`,
      );
    }
    const target = redirectTarget(url, header('location'));
    // The token is for the operator's origin only; it does not come back if a redirect leads back there.
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
        `${urlText(url)} did not answer within ${seconds(limits.requestMs)}`,
        slowAdvice,
      );
    }
    throw requestFailure(urlText(url), codeOf(error));
  } finally {
    clearTimeout(timer);
  }
}

/** Drops an unread body, so that its socket is free again. */
function drain(body: Dispatcher.ResponseData['body']): void {
  body.on('error', () => {});
  body.dump({ limit: 64 * 1024, signal: AbortSignal.timeout(1000) }).catch(() => {});
}

const running = 'Check that the upstream is running and that its URL is right.';
const network = 'Check the URL and the network of this machine.';

/** What failed and what to do, by codes of failures that may pass. */
const temporaryFailures: readonly [codes: RegExp, what: string, advice: string][] = [
  [/^ECONNREFUSED$/, 'refused the connection', running],
  [/^(ECONNRESET|EPIPE|UND_ERR_SOCKET)$/, 'cut the connection before it answered', running],
  [/^(UND_ERR_CONNECT_TIMEOUT|ETIMEDOUT)$/, 'did not accept a connection in time', running],
  [/^UND_ERR_HEADERS_TIMEOUT$/, 'did not begin to answer in time', slowAdvice],
  [/^ENOTFOUND$/, 'has a host name that is not known', network],
  [/^EAI_AGAIN$/, 'has a host name that cannot be looked up now', network],
  [/^(EHOSTUNREACH|ENETUNREACH)$/, 'cannot be reached over the network', network],
  [
    /^EMFILE$/,
    'was not requested: this process has reached its limit of open files (EMFILE)',
    'Raise it with "ulimit -n", or LimitNOFILE= of its systemd unit.',
  ],
];

/** The same of other failures; those of certificates are listed in Node's documentation of `tls`. */
const otherFailures: readonly [codes: RegExp, what: string, advice: string][] = [
  [
    /^UND_ERR_(ABORTED|INVALID_ARG|PRX_TLS)$/,
    'was not reached: the proxy that HTTPS_PROXY or HTTP_PROXY names has refused',
    'Check its URL and its credentials.',
  ],
  [
    /^(HPE_|HTTPParserError|UND_ERR_HEADERS_OVERFLOW)/,
    'answered with something that is not HTTP',
    'Check the URL.',
  ],
  [/^ERR_SSL_/, 'does not speak TLS', 'Check whether its URL begins with http: or https:.'],
  [
    /CERT|CRL|^UNABLE_TO_|^(INVALID_CA|INVALID_PURPOSE|HOSTNAME_MISMATCH|PATH_LENGTH_EXCEEDED)$/,
    'has a certificate that is not accepted',
    'Have it renewed, or name who signed it in NODE_EXTRA_CA_CERTS.',
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
    `${name} is at a link-local address, where clouds serve secrets of a machine, and is not requested. Only a URL that ` +
      'names such an address itself leads there. Check the URL.',
  );
}

function checkStatus({ url, response: { statusCode: status }, header }: Answered): void {
  if (status === 200) return;
  const what = `${urlText(url)} answered ${status} ${STATUS_CODES[status] ?? ''}`.trimEnd();
  if (status >= 500 || status === 429 || status === 408) {
    throw new TemporaryError(what, slowAdvice, retryAfterMs(header('retry-after')));
  }
  if (status === 401 || status === 403) {
    throw new UpstreamError(`${what}. Check the token that is sent to it.`);
  }
  if (status >= 400) throw new UpstreamError(`${what}. Check the URL.`);
  throw new UpstreamError(`${what}, but only 200 OK carries a list. Check the URL.`);
}

/** The greatest number of seconds (RFC 9111, section 1.2.2). */
const mostSeconds = 2 ** 31;

/** Returns the milliseconds that `Retry-After` asks for, in seconds or as a date; 0 if it is absent or makes no sense. */
function retryAfterMs(retryAfter: string | null): number {
  if (retryAfter === null) return 0;
  if (/^\d+$/.test(retryAfter)) return Math.min(Number(retryAfter), mostSeconds) * 1000;
  const date = Date.parse(retryAfter);
  return Number.isNaN(date) ? 0 : Math.max(date - Date.now(), 0);
}

/** How much of a body is read ahead if nothing announces its end. */
const readAheadBytes = 256 * 1024 ** 2;

/**
 * Prepares a body without Content-Length or chunks. undici takes a reset of the connection for its end, so JSON Lines are
 * refused: cut off, they look complete. Other lists are read ahead, because undici fails an assertion outside of any
 * promise if such a connection ends while its body is paused.
 */
function bodyOf({ url, response, header }: Answered, lines: boolean): Readable {
  const isChunked = /\bchunked\s*$/i.test(header('transfer-encoding') ?? '');
  if (isChunked || header('content-length') !== null) return response.body;
  if (lines) {
    throw new UpstreamError(
      `${urlText(url)} sends JSON Lines without Content-Length or chunks, so that a cut-off list may look complete. ` +
        'Let it send either, or put a reverse proxy in front of it that does.',
    );
  }
  const ahead = new PassThrough({ highWaterMark: readAheadBytes });
  pipeline(response.body, ahead, () => {});
  return ahead;
}

function isLinesType(contentType: string | null): boolean {
  return /^\s*(application|text)\/(x-)?(ndjson|jsonl|jsonlines|json-lines)\s*(;|$)/i.test(contentType ?? '');
}
