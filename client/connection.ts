// Requests to a medref: key, retries, timeouts, ETags, and errors.

import { type Digest, parseDigest } from './digests.ts';
import { broken, isPassing, MedrefError, notMedref, unreachable } from './medref-error.ts';

/** The address of a medref, and how to reach it. */
export interface ClientOptions {
  /** Address of the service, without the path of a route: `https://medref.example`. */
  readonly baseUrl: string | URL;
  /** The key from the operator, or a function that returns the current key; it is called for each request. */
  readonly key: string | (() => string | Promise<string>);
  /** Replaces the platform's `fetch`; the `fetch` of undici fits, too. */
  readonly fetch?: Fetch | undefined;
  /** Aborts everything that the client does. */
  readonly signal?: AbortSignal | undefined;
  /** How long the service may be silent during a request, in ms; 30,000 by default. */
  readonly timeout?: number | undefined;
  /** How often a request is repeated after a temporary error; 4 by default. A mirror repeats it without end. */
  readonly retries?: number | undefined;
}

/** The part of `fetch` that the client uses. */
export type Fetch = (url: string, init: FetchInit) => Promise<FetchResponse>;

/** The options with which the client calls `fetch`. */
export interface FetchInit {
  /** Header fields by name. */
  readonly headers: Record<string, string>;
  /** Aborts the request. */
  readonly signal: AbortSignal;
}

/** The part of a response that the client uses. */
export interface FetchResponse {
  /** Status code. */
  readonly status: number;
  /** Header fields. */
  readonly headers: {
    /** Returns the value of a field. */
    get(name: string): string | null;
  };
  /** The decoded body; `null` without one. */
  readonly body: {
    /** Returns the reader of the body. */
    getReader(): {
      /** Reads the next piece. */
      read(): Promise<{ readonly value?: Uint8Array | undefined }>;
    };
  } | null;
}

/** Durations; tests shorten them. */
export interface Timing {
  /** The length of a second, in ms. */
  readonly secondMs: number;
  /** How long the service may be silent during a request, in ms. */
  readonly silenceMs: number;
  /** How often a request is sent in total. */
  readonly tries: number;
}

export const usualTiming: Timing = { secondMs: 1_000, silenceMs: 30_000, tries: 5 };

/** The longest waits, in seconds: for `Retry-After`, and between retries. */
const longest = { retryAfter: 60, growing: 30 };

/** The cache of responses: their number, and the longest body, in characters. */
const kept = { responses: 50, length: 256 * 1024 };

/** The release of the client, which `User-Agent` names. */
export const clientVersion = '0.1.0';

/** Browsers have a `User-Agent` of their own, and ask the service before they send a different one. */
const userAgent: Readonly<Record<string, string>> =
  (globalThis as { process?: { versions?: { node?: string } } }).process?.versions?.node === undefined
    ? {}
    : { 'user-agent': `medref-client/${clientVersion}` };

/** Parameters of a request; absent ones are `undefined`. */
export type Query = Readonly<Record<string, string | number | boolean | undefined>>;

/** How persistently to retry. */
export interface Patience {
  readonly signal?: AbortSignal | undefined;
  /** Replaces {@link Timing.tries}. */
  readonly tries?: number | undefined;
  /** Called for each error that is retried. */
  readonly onError?: ((error: MedrefError) => void) | undefined;
}

/** The options of one request. */
export interface Asked extends Patience {
  readonly query?: Query | undefined;
  readonly accept?: string;
  /** Whether the response is cached and revalidated with its ETag. */
  readonly isKept?: boolean;
  /** Seconds for which the service was asked to wait. */
  readonly wait?: number | undefined;
}

/** A response with an unread body; the caller ends its exchange. */
export interface Opened {
  readonly exchange: Exchange;
  readonly url: string;
  readonly status: number;
  readonly etag: string | null;
  readonly version: number;
  readonly digest: Digest | undefined;
}

/** A JSON response. */
export interface Answer<Body> {
  readonly version: number;
  readonly digest: Digest | undefined;
  readonly body: Body;
}

interface KeptResponse {
  readonly etag: string;
  readonly text: string;
}

/** A copy whose digest is verified. */
export interface VerifiedCopy {
  readonly version: number | undefined;
  /** Its set digest, in base64; nothing is reported without one. */
  readonly set: string | null | undefined;
}

export class Connection {
  readonly #baseUrl: string;
  readonly #key: () => string | Promise<string>;
  readonly #send: Fetch;
  readonly #signal: AbortSignal | undefined;
  readonly #kept = new Map<string, KeptResponse>();
  /** What the next request of a collection reports: a version, and the set digest of the copy. */
  readonly #verified = new Map<string, string>();
  readonly timing: Timing;

  /** @throws TypeError if the address or the key is malformed */
  constructor({ baseUrl, key, fetch: send, signal, timeout, retries }: ClientOptions, timing: Timing) {
    if (!baseUrl) throw new TypeError('baseUrl is missing: the address of the service.');
    if (typeof key !== 'function') requireKey(key);
    requireNumber('timeout', timeout, 1);
    requireNumber('retries', retries, 0);
    const url = parsedUrl(baseUrl);
    if (!url || !/^https?:$/.test(url.protocol) || url.username || url.password || url.search || url.hash)
      throw new TypeError(
        `baseUrl must be an http or https URL without credentials, query and fragment, such as https://medref.example.`,
      );
    this.#baseUrl = url.href.replace(/\/+$/, '');
    this.#key = typeof key === 'function' ? key : () => key;
    // The platform's current fetch, never called as a method: browsers refuse that.
    this.#send = (...args) => (send ?? globalThis.fetch)(...args);
    this.#signal = signal;
    this.timing = {
      ...timing,
      ...(timeout !== undefined && { silenceMs: timeout }),
      ...(retries !== undefined && { tries: retries + 1 }),
    };
  }

  /** Requests JSON. @throws MedrefError, or a signal's reason */
  async json<Body>(path: string, asked: Asked): Promise<Answer<Body>> {
    for (let tries = 1; ; tries += 1) {
      try {
        return await this.#jsonOnce(path, asked);
      } catch (error) {
        await this.recover(error, tries, asked);
      }
    }
  }

  /** Sends one request. @returns a successful response */
  async open(path: string, asked: Asked, etag?: string): Promise<Opened> {
    const { query = {}, accept = 'application/json', wait = 0 } = asked;
    const given = new URLSearchParams();
    for (const [name, value] of Object.entries(query))
      if (value !== undefined) given.set(name, String(value));
    const url = `${this.#baseUrl}/${path}${given.size > 0 ? `?${given}` : ''}`;
    const key = requireKey(await this.#key());
    const [collection = ''] = path.split('/');
    const have = this.#verified.get(collection);
    const exchange = new Exchange({
      ...{ url, send: this.#send, signals: this.#signals(asked) },
      headers: {
        ...{ authorization: `Bearer ${key}`, 'accept-encoding': 'gzip', ...userAgent, accept },
        ...(etag && { 'if-none-match': etag }),
        ...(have !== undefined && { 'medref-have': have }),
      },
      silenceMs: this.timing.silenceMs + wait * this.timing.secondMs,
    });
    try {
      const { status, headers } = await exchange.open();
      if (status !== 200 && !(etag && status === 304))
        throw errorOf({ url, status, headers, text: await exchange.text() });
      if (this.#verified.get(collection) === have) this.#verified.delete(collection);
      const version = Number(headers.get('medref-version') ?? Number.NaN);
      if (!Number.isSafeInteger(version)) throw notMedref(status, url, 'came without Medref-Version');
      const digest = parseDigest(headers.get('medref-digest'));
      return { exchange, url, status, etag: headers.get('etag'), version, digest };
    } catch (error) {
      exchange.end();
      throw error;
    }
  }

  /** Reports with the next request of the collection that the caller has a version, whose digest it has verified. */
  verified(collection: string, { version, set }: VerifiedCopy): void {
    if (version !== undefined && set) this.#verified.set(collection, `${version} ${set}`);
  }

  /** Waits until a retry is due. @throws the error, if a retry is useless or was tried often enough */
  async recover(error: unknown, tries: number, asked: Patience): Promise<void> {
    const most = asked.tries ?? this.timing.tries;
    if (!isPassing(error) || tries >= most) throw error;
    const { retryAfter } = error;
    if (retryAfter !== null && retryAfter > longest.retryAfter && most < Infinity) throw error;
    asked.onError?.(error);
    await this.pause(retryAfter ?? growing(tries), asked);
  }

  /** Waits for some seconds, or until a signal is aborted: the next request then throws. */
  pause(seconds: number, asked: Patience): Promise<void> {
    const signals = this.#signals(asked);
    return new Promise((resolve) => {
      const end = () => {
        clearTimeout(timer);
        for (const unwatch of unwatching) unwatch();
        resolve();
      };
      const unwatching = signals.map((signal) => onAbort(signal, end));
      // Timers are limited to 31 bits.
      const timer = setTimeout(end, Math.min(seconds * this.timing.secondMs, 2 ** 31 - 1));
      if (this.isEnded(asked)) end();
    });
  }

  /** Throws the reason of a signal that has been aborted. */
  requireNotEnded(asked: Patience): void {
    for (const signal of this.#signals(asked)) signal.throwIfAborted();
  }

  /** Returns whether a signal has been aborted. */
  isEnded(asked: Patience): boolean {
    return this.#signals(asked).some((signal) => signal.aborted);
  }

  async #jsonOnce<Body>(path: string, asked: Asked): Promise<Answer<Body>> {
    const key = `${path} ${JSON.stringify(asked.query)}`;
    const held = this.#kept.get(key);
    const { exchange, url, status, etag, version, digest } = await this.open(path, asked, held?.etag);
    try {
      const text = held && status === 304 ? held.text : await exchange.text();
      const body = parsed(text, url);
      if (asked.isKept && etag) this.#keep(key, { etag, text });
      return { version, digest, body: body as Body };
    } finally {
      exchange.end();
    }
  }

  /** Caches a response; the least recently used ones are dropped. */
  #keep(key: string, response: KeptResponse): void {
    this.#kept.delete(key);
    if (response.text.length <= kept.length) this.#kept.set(key, response);
    for (const oldest of this.#kept.keys()) {
      if (this.#kept.size <= kept.responses) return;
      this.#kept.delete(oldest);
    }
  }

  #signals({ signal }: Patience): AbortSignal[] {
    return [this.#signal, signal].filter((it) => it !== undefined);
  }
}

/** Returns seconds that double with each attempt, with a random part. */
export function growing(tries: number): number {
  return Math.min(2 ** (tries - 3), longest.growing) * (0.5 + Math.random() / 2);
}

function parsedUrl(text: string | URL): URL | null {
  try {
    return new URL(text);
  } catch {
    return null;
  }
}

/** Returns the key. @throws TypeError if it is none */
function requireKey(key: unknown): string {
  if (typeof key !== 'string' || key === '') throw new TypeError('key is missing: the operator issues it.');
  if (!/^[!-~]+$/.test(key)) throw new TypeError('key must be visible ASCII without spaces.');
  return key;
}

/** @throws TypeError */
function requireNumber(name: string, value: number | undefined, least: number): void {
  if (value === undefined || (Number.isFinite(value) && value >= least)) return;
  throw new TypeError(`${name} must be a number from ${least}.`);
}

interface Refused {
  readonly url: string;
  readonly status: number;
  readonly headers: FetchResponse['headers'];
  readonly text: string;
}

/** Returns the error of an unsuccessful response. */
function errorOf({ url, status, headers, text }: Refused): MedrefError {
  const seconds = headers.get('retry-after');
  const retryAfter = seconds && /^\d+$/.test(seconds) ? Number(seconds) : null;
  const details = { retryAfter, requestId: headers.get('x-request-id') };
  try {
    const { success, data } = JSON.parse(text);
    if (success === false) return new MedrefError(status, data.name, data.message, details);
  } catch {
    // The response of a proxy, or of a different service.
  }
  const error = notMedref(status, url, `responded with ${status}`, details);
  return isPassing(error) ? new MedrefError(status, `HTTP ${status}`, error.message, details) : error;
}

function parsed(text: string, url: string): unknown {
  let body: { success?: unknown };
  try {
    body = JSON.parse(text);
  } catch (error) {
    // Responses with gzip can be truncated without an error.
    throw broken(url, 'the body is not JSON', error);
  }
  if (body?.success !== true) throw notMedref(200, url, 'came without "success"');
  return body;
}

/** The options of an exchange. */
export interface Exchanged {
  readonly send: Fetch;
  readonly url: string;
  readonly headers: Record<string, string>;
  readonly signals: readonly AbortSignal[];
  /** How long the service may be silent, in ms. */
  readonly silenceMs: number;
}

/** A request with its response; the caller ends it. Throws a signal's reason, or a MedrefError with status 0. */
export class Exchange {
  readonly #controller = new AbortController();
  readonly #it: Exchanged;
  readonly #unwatch: (() => void)[] = [];
  #response: FetchResponse | undefined;

  constructor(it: Exchanged) {
    this.#it = it;
  }

  /** Sends the request. @returns the response, with an unread body */
  async open(): Promise<FetchResponse> {
    const { send, url, headers, signals } = this.#it;
    for (const signal of signals) {
      signal.throwIfAborted();
      this.#unwatch.push(onAbort(signal, () => this.#controller.abort(signal.reason)));
    }
    const { signal } = this.#controller;
    this.#response = await this.#withTimeout(() => send(url, { headers, signal }), unreachable);
    return this.#response;
  }

  /** Yields the decoded body. */
  async *chunks(): AsyncGenerator<Uint8Array> {
    const reader = this.#response?.body?.getReader();
    for (;;) {
      const read = await this.#withTimeout(async () => reader?.read());
      if (!read?.value) return;
      yield read.value;
    }
  }

  /** Returns the whole body. */
  async text(): Promise<string> {
    const decoder = new TextDecoder();
    let text = '';
    for await (const chunk of this.chunks()) text += decoder.decode(chunk, { stream: true });
    return text + decoder.decode();
  }

  /** Closes the connection; the rest of the body is dropped. */
  end(): void {
    for (const unwatch of this.#unwatch) unwatch();
    this.#controller.abort();
  }

  /** @param failure makes the error of a failure without a response */
  async #withTimeout<Value>(act: () => Promise<Value>, failure = broken): Promise<Value> {
    const { url, silenceMs } = this.#it;
    const { signal } = this.#controller;
    const silent = broken(url, `no data for ${silenceMs / 1000} s`);
    const timer = setTimeout(() => this.#controller.abort(silent), silenceMs);
    try {
      return await act();
    } catch (error) {
      if (signal.aborted) throw signal.reason;
      // Node reports the reason of a broken connection in the cause.
      const { cause, message } = error as Error;
      throw failure(
        url,
        firstLine(cause instanceof Error ? cause.message || (cause as { code?: string }).code : '') ||
          message,
        error,
      );
    } finally {
      clearTimeout(timer);
    }
  }
}

/** Messages of OpenSSL have several lines. */
function firstLine(text: string | undefined): string {
  return (text ?? '').trim().split('\n', 1)[0] as string;
}

const watched = new WeakMap<AbortSignal, Set<() => void>>();

/** Calls a function when a signal is aborted. @returns a function that removes it */
export function onAbort(signal: AbortSignal, act: () => void): () => void {
  const acts = watched.get(signal) ?? new Set();
  if (!watched.has(signal)) {
    watched.set(signal, acts);
    signal.addEventListener('abort', () => {
      for (const it of acts) it();
    });
  }
  acts.add(act);
  return () => void acts.delete(act);
}
