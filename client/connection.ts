// Requests to a medref: key, retries, timeouts, ETags, and errors.

import { type Digest, parseDigest } from './digests.ts';
import { broken, isPassing, MedrefError, notMedref } from './medref-error.ts';

/** The address of a medref, and how to reach it. */
export interface ClientOptions {
  /** Address of the service, without the path of a route: `https://medref.example`. */
  readonly baseUrl: string | URL;
  /** The key from the operator. */
  readonly key: string;
  /** Replaces the platform's `fetch`. */
  readonly fetch?: typeof fetch | undefined;
  /** Aborts everything that the client does. */
  readonly signal?: AbortSignal | undefined;
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

export type Query = Readonly<Record<string, string | number | undefined>>;

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

export class Connection {
  readonly #baseUrl: string;
  readonly #headers: Readonly<Record<string, string>>;
  readonly #send: typeof fetch;
  readonly #signal: AbortSignal | undefined;
  readonly #kept = new Map<string, KeptResponse>();
  readonly timing: Timing;

  /** @throws TypeError if the address or the key is malformed */
  constructor({ baseUrl, key, fetch: send, signal }: ClientOptions, timing: Timing) {
    if (!baseUrl) throw new TypeError('baseUrl is missing: the address of the service.');
    if (typeof key !== 'string' || key === '') throw new TypeError('key is missing: the operator issues it.');
    const url = new URL(baseUrl);
    if (!/^https?:$/.test(url.protocol) || url.username || url.password || url.search || url.hash)
      throw new TypeError('baseUrl must be an http or https URL without credentials, query and fragment.');
    if (!/^[!-~]+$/.test(key)) throw new TypeError('key must be visible ASCII without spaces.');
    this.#baseUrl = url.href.replace(/\/+$/, '');
    this.#headers = { authorization: `Bearer ${key}`, 'accept-encoding': 'gzip' };
    // The platform's current fetch, never called as a method: browsers refuse that.
    this.#send = (...args) => (send ?? globalThis.fetch)(...args);
    this.#signal = signal;
    this.timing = timing;
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
    const exchange = new Exchange({
      ...{ url, send: this.#send, signals: this.#signals(asked) },
      headers: { ...this.#headers, accept, ...(etag && { 'if-none-match': etag }) },
      silenceMs: this.timing.silenceMs + wait * this.timing.secondMs,
    });
    try {
      const { status, headers } = await exchange.open();
      if (status !== 200 && !(etag && status === 304))
        throw errorOf({ url, status, headers, text: await exchange.text() });
      const version = Number(headers.get('medref-version') ?? Number.NaN);
      if (!Number.isSafeInteger(version)) throw notMedref(status, url, 'came without Medref-Version');
      const digest = parseDigest(headers.get('medref-digest'));
      return { exchange, url, status, etag: headers.get('etag'), version, digest };
    } catch (error) {
      exchange.end();
      throw error;
    }
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

interface Refused {
  readonly url: string;
  readonly status: number;
  readonly headers: Headers;
  readonly text: string;
}

/** Returns the error of an unsuccessful response. */
function errorOf({ url, status, headers, text }: Refused): MedrefError {
  const seconds = headers.get('retry-after');
  const retryAfter = seconds && /^\d+$/.test(seconds) ? Number(seconds) : null;
  try {
    const { success, data } = JSON.parse(text);
    if (success === false) return new MedrefError(status, data.name, data.message, { retryAfter });
  } catch {
    // The response of a proxy, or of a different service.
  }
  const error = notMedref(status, url, `responded with ${status}`);
  return isPassing(error) ? new MedrefError(status, `HTTP ${status}`, error.message, { retryAfter }) : error;
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
  readonly send: typeof fetch;
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly signals: readonly AbortSignal[];
  /** How long the service may be silent, in ms. */
  readonly silenceMs: number;
}

/** A request with its response; the caller ends it. Throws a signal's reason, or a MedrefError with status 0. */
export class Exchange {
  readonly #controller = new AbortController();
  readonly #it: Exchanged;
  readonly #unwatch: (() => void)[] = [];
  #response: Response | undefined;

  constructor(it: Exchanged) {
    this.#it = it;
  }

  /** Sends the request. @returns the response, with an unread body */
  async open(): Promise<Response> {
    const { send, url, headers, signals } = this.#it;
    for (const signal of signals) {
      signal.throwIfAborted();
      this.#unwatch.push(onAbort(signal, () => this.#controller.abort(signal.reason)));
    }
    const { signal } = this.#controller;
    this.#response = await this.#withTimeout(() => send(url, { headers, signal }));
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

  async #withTimeout<Value>(act: () => Promise<Value>): Promise<Value> {
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
      throw broken(url, cause instanceof Error ? cause.message : message, error);
    } finally {
      clearTimeout(timer);
    }
  }
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
