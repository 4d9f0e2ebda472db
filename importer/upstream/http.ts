// In: an http(s) URL. Out: the document found there, after tries, waits and redirects; the only place that knows undici.

import { lookup as systemLookup } from 'node:dns';
import { STATUS_CODES } from 'node:http';
import { unescape as percentDecoded } from 'node:querystring';
import { setTimeout as sleep } from 'node:timers/promises';
import { buildConnector, type Dispatcher, EnvHttpProxyAgent, Pool, request } from 'undici';
import type { Access, UpstreamLimits } from './access.ts';
import { documentOf, type Found, hasLinesExtension, type Validators } from './body.ts';
import { failingOnReset } from './connection-reset.ts';
import { passingOverContinue } from './continue-answers.ts';
import { codeOf, quoted, seconds, slowAdvice, UpstreamError, urlText } from './error.ts';
import { isLinkLocal, refusingLinkLocal } from './link-local.ts';
import { maxUrlLength, namedUrl } from './named-url.ts';

/** Asks http(s) servers, over connections that it keeps until it is closed. */
export interface HttpClient {
  /** @returns the document, or that it has not changed. Throws {@link UpstreamError}, or the signal's reason. */
  open(url: URL, validators: Validators | null): Promise<Found>;
  /** Asks once. @returns what was answered, but for its body. Throws {@link UpstreamError}, or the signal's reason. */
  ask(url: URL): Promise<Answered>;
  close(): Promise<void>;
}

/** Makes a client; nothing is sent before its first `open`. */
export function createHttpClient(access: Access): HttpClient {
  const agent = agentOf(access);
  return {
    open: (url, validators) => openHttp(url, validators, { ...access, agent }),
    ask: (url) => askHttp(url, { ...access, agent }),
    close: () => agent.destroy(),
  };
}

/**
 * Connects by the proxies that `HTTPS_PROXY`, `HTTP_PROXY` and `NO_PROXY` name, or straight. Certificates are checked,
 * whatever `NODE_TLS_REJECT_UNAUTHORIZED` says. @throws UpstreamError where a proxy is not the URL of one
 */
function agentOf({ limits, lookup = systemLookup, ca }: Access): Dispatcher {
  const tls = { timeout: limits.connectMs, rejectUnauthorized: true, ...(ca !== undefined && { ca }) };
  try {
    return new EnvHttpProxyAgent({
      bodyTimeout: 0,
      connect: { ...tls, lookup: refusingLinkLocal(lookup) },
      ...{ proxyTls: tls, requestTls: tls },
      proxyTunnel: false, // Many proxies tunnel to port 443 alone.
      factory: (origin, { connect, ...options }: Pool.Options) =>
        new Pool(origin, { ...options, connect: connectorOf(connect) }),
    });
  } catch {
    throw new UpstreamError(
      'HTTPS_PROXY or HTTP_PROXY is not the URL of a proxy, such as http://proxy.example:3128. Set it to one, or to nothing.',
    );
  }
}

/** Mends what undici makes of some connections, whoever makes these. */
function connectorOf(how: Pool.Options['connect']): buildConnector.connector {
  const connect = typeof how === 'function' ? how : buildConnector({ ...how });
  return (options, callback) =>
    connect(options, (...[error, socket]) =>
      error ? callback(error, null) : callback(null, passingOverContinue(failingOnReset(socket))),
    );
}

interface Connected extends Access {
  readonly agent: Dispatcher;
}

async function openHttp(url: URL, validators: Validators | null, access: Connected): Promise<Found> {
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

/** Waits before the next try, or throws the failure's last word where there is no next try. */
async function waitForNextTry(
  failure: PassingFailure,
  { tries, start, access }: { tries: number; start: number; access: Connected },
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
  access: Connected;
  deadline: number;
}

async function tryOnce({ url, validators, access, deadline }: Try): Promise<Found> {
  const { limits, signal } = access;
  const headers: Record<string, string> = {
    accept: acceptOf(url),
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
    if (response.statusCode === 304 && validators)
      return discarded(response.body, { notModified: true, version: header('medref-version') });
    checkStatus(urlText(found.url), response.statusCode, header('retry-after'));
    checkEncoding(urlText(found.url), header('content-encoding'));
  } catch (error) {
    throw discarded(response.body, error);
  }
  const lines = hasLinesExtension(url) || hasLinesExtension(found.url) || isLinesType(header('content-type'));
  const length = header('content-length') === null ? null : Number(header('content-length'));
  const framed = length !== null || /\bchunked\s*$/i.test(header('transfer-encoding') ?? '');
  return documentOf({ url: found.url, raw: response.body, framed, length, limits, signal, lines, header });
}

/**
 * Lines are a list as it was at one moment, and pages are not. With parameters a medref has pages alone.
 */
function acceptOf({ search }: URL): string {
  const [first, second] = ['application/x-ndjson', 'application/json'];
  const [liked, other] = search === '' ? [first, second] : [second, first];
  return `${liked}, ${other};q=0.9, */*;q=0.1`;
}

/** What an upstream answered, but for its body. */
export interface Answered {
  readonly status: number;
  readonly header: (name: string) => string | null;
  /** How long it asks to wait before it is asked again, in ms. */
  readonly retryAfterMs: number;
}

/** Asks once, after redirects, and reads no body. @throws UpstreamError, or the signal's reason */
async function askHttp(url: URL, access: Connected): Promise<Answered> {
  const headers = { accept: 'application/json', 'user-agent': 'medref', ...authorization(url, access.token) };
  const deadline = performance.now() + access.limits.requestMs;
  const { response } = await follow(url, headers, { access, deadline });
  const header = (name: string) => headerOf(response, name);
  return discarded(response.body, {
    ...{ status: response.statusCode, header, retryAfterMs: waitAsked(header('retry-after')) },
  });
}

function headerOf(response: Dispatcher.ResponseData, name: string): string | null {
  return String(response.headers[name] ?? '') || null;
}

/** Sends the request, and again to where it is redirected. */
async function follow(
  start: URL,
  startHeaders: Record<string, string>,
  { access, deadline }: { access: Connected; deadline: number },
): Promise<{ url: URL; response: Dispatcher.ResponseData }> {
  let url = start;
  let headers = startHeaders;
  for (let redirects = 0; ; redirects++) {
    if (isLinkLocal(url.hostname) && url.hostname !== start.hostname) throw linkLocal(urlText(url));
    const response = await send(url, headers, { access, deadline });
    if (![301, 302, 303, 307, 308].includes(response.statusCode)) return { url, response };
    discarded(response.body, null);
    if (redirects === access.limits.redirects) {
      throw new UpstreamError(
        `${urlText(start)} redirects more than ${redirects} times, perhaps in a loop. Check the URL.`,
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
  { access, deadline }: { access: Connected; deadline: number },
): Promise<Dispatcher.ResponseData> {
  const { limits, agent, signal } = access;
  const stop = new AbortController();
  const abort = () => stop.abort(signal.reason);
  const late = () =>
    stop.abort(
      new PassingFailure(`${urlText(url)} did not answer within ${seconds(limits.requestMs)}`, slowAdvice),
    );
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
    throw requestFailure(urlText(url), codeOf(error), limits);
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

const runningAdvice = 'Check that the upstream is running and that its URL is right.';
const networkAdvice = 'Check the URL and the network of this machine.';

const requestFailures: Record<string, [what: string, advice: string]> = {
  ECONNREFUSED: ['refused the connection', runningAdvice],
  ECONNRESET: ['cut the connection before it answered', runningAdvice],
  EPIPE: ['cut the connection before it answered', runningAdvice],
  UND_ERR_SOCKET: ['cut the connection before it answered', runningAdvice],
  ENOTFOUND: ['has a host name that is not known', networkAdvice],
  EAI_AGAIN: ['has a host name that cannot be looked up now', networkAdvice],
  EHOSTUNREACH: ['cannot be reached over the network', networkAdvice],
  ENETUNREACH: ['cannot be reached over the network', networkAdvice],
  EMFILE: [
    'was not asked: this process has reached its limit of open files (EMFILE)',
    'Raise it with "ulimit -n", or LimitNOFILE= of its systemd unit.',
  ],
  ETIMEDOUT: ['did not accept a connection in time', runningAdvice],
};

function linkLocal(name: string): UpstreamError {
  return new UpstreamError(
    `${name} is at a link-local address, where machines tell of themselves, and is not asked. Check the URL: only one that ` +
      'names such an address itself leads there.',
  );
}

function requestFailure(name: string, code: string, limits: UpstreamLimits): UpstreamError {
  if (code === 'ERR_LINK_LOCAL') return linkLocal(name);
  if (proxyFaults.includes(code)) {
    return new UpstreamError(
      `${name} was not reached: the proxy that HTTPS_PROXY or HTTP_PROXY names has refused. Check its URL and its credentials.`,
    );
  }
  if (code === 'UND_ERR_CONNECT_TIMEOUT') {
    return new PassingFailure(
      `${name} did not accept a connection within ${seconds(limits.connectMs)}`,
      runningAdvice,
    );
  }
  if (code === 'UND_ERR_HEADERS_TIMEOUT') {
    return new PassingFailure(
      `${name} did not begin to answer within ${seconds(limits.headersMs)}`,
      slowAdvice,
    );
  }
  const failure = requestFailures[code];
  if (failure) return new PassingFailure(`${name} ${failure[0]}`, failure[1]);
  if (code.startsWith('HPE_') || code === 'HTTPParserError' || code === 'UND_ERR_HEADERS_OVERFLOW') {
    return new UpstreamError(`${name} answered with something that is not HTTP (${code}). Check the URL.`);
  }
  if (certificateFaults.test(code)) {
    return new UpstreamError(
      `${name} has a certificate that is not accepted (${code}). Have it mended, or name who signed it in NODE_EXTRA_CA_CERTS.`,
    );
  }
  if (code.startsWith('ERR_SSL_')) {
    return new UpstreamError(
      `${name} does not speak TLS (${code}). Check whether its URL begins with http: or https:.`,
    );
  }
  return new UpstreamError(`${name} could not be asked (${code}). Check the URL.`);
}

/** Codes of what a proxy refuses. */
const proxyFaults = ['UND_ERR_ABORTED', 'UND_ERR_INVALID_ARG', 'UND_ERR_PRX_TLS'];

/** Codes of a certificate that is not accepted (Node's documentation of `tls`, X509 certificate error codes). */
const certificateFaults =
  /CERT|CRL|^UNABLE_TO_|^(INVALID_CA|INVALID_PURPOSE|HOSTNAME_MISMATCH|PATH_LENGTH_EXCEEDED)$/;

function checkStatus(name: string, status: number, retryAfter: string | null): void {
  if (status === 200) return;
  const what = `${name} answered ${status} ${STATUS_CODES[status] ?? ''}`.trimEnd();
  if (status >= 500 || status === 429 || status === 408) {
    throw new PassingFailure(what, slowAdvice, waitAsked(retryAfter));
  }
  if (status === 401 || status === 403) {
    throw new UpstreamError(`${what}. Check the token that is sent to it.`);
  }
  if (status >= 400) throw new UpstreamError(`${what}. Check the URL.`);
  throw new UpstreamError(`${what}, where only 200 OK carries a list. Check the URL.`);
}

/** More seconds than these mean these (RFC 9111, section 1.2.2). */
const mostSeconds = 2 ** 31;

/** The milliseconds that `Retry-After` asks for, in seconds or as a date; 0 where it is absent or makes no sense. */
function waitAsked(retryAfter: string | null): number {
  if (retryAfter === null) return 0;
  if (/^\d+$/.test(retryAfter)) return Math.min(Number(retryAfter), mostSeconds) * 1000;
  const date = Date.parse(retryAfter);
  return Number.isNaN(date) ? 0 : Math.max(date - Date.now(), 0);
}

function checkEncoding(name: string, encoding: string | null): void {
  const unknown = (encoding ?? '')
    .split(',')
    .map((coding) => coding.trim())
    .find((coding) => !['gzip', 'x-gzip', 'identity', ''].includes(coding.toLowerCase()));
  if (unknown !== undefined) {
    throw new UpstreamError(
      `${name} sends its body encoded as ${quoted(unknown)}, where only gzip was asked for.`,
    );
  }
}

function isLinesType(contentType: string | null): boolean {
  return /^\s*(application|text)\/(x-)?(ndjson|jsonl|jsonlines|json-lines)\s*(;|$)/i.test(contentType ?? '');
}
