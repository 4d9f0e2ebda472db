// Requests to a medref: key, retries, timeouts, ETags, and what a response means.

import { type Digest, parseDigest } from './digests.ts';
import { broken, isPassing, MedrefError, notMedref } from './medref-error.ts';

/** Which medref, and how it is reached. */
export interface ClientOptions {
  /** Address of the service, without a path of its routes: `https://medref.example`. */
  readonly baseUrl: string | URL;
  /** The key that the operator gave. */
  readonly key: string;
  /** In the place of the `fetch` of the platform. */
  readonly fetch?: typeof fetch | undefined;
  /** Ends everything that the client does. */
  readonly signal?: AbortSignal | undefined;
}

/** How long things take. */
export interface Timing {
  /** A second, as the service means it: shorter in tests. */
  readonly secondMs: number;
  /** For how long a service may say nothing while something of it is waited for. */
  readonly silenceMs: number;
  /** How often a request is sent in all. */
  readonly tries: number;
}

export const usualTiming: Timing = { secondMs: 1_000, silenceMs: 30_000, tries: 5 };

/** How long is waited for more than a request: in seconds. */
const longest = { retryAfter: 60, growing: 30 };

/** Answers that are kept for a 304: how many, and of how many characters at most. */
const kept = { answers: 50, length: 256 * 1024 };

export type Query = Readonly<Record<string, string | number | undefined>>;

/** How patiently something is asked for. */
export interface Patience {
  readonly signal?: AbortSignal | undefined;
  /** In the place of {@link Timing.tries}. */
  readonly tries?: number | undefined;
  /** Told of what is tried again. */
  readonly onServiceError?: ((error: MedrefError) => void) | undefined;
}

/** How one request is asked. */
export interface Asked extends Patience {
  readonly query?: Query | undefined;
  readonly accept?: string;
  /** Its answer is kept, and asked for with its ETag the next time. */
  readonly isKept?: boolean;
  /** For how many seconds the service was asked to wait. */
  readonly wait?: number | undefined;
}

/** An answer whose body has still to be read; whoever asked ends its exchange. */
export interface Opened {
  readonly exchange: Exchange;
  readonly url: string;
  readonly status: number;
  readonly etag: string | null;
  readonly version: number;
  readonly digest: Digest | undefined;
}

/** A JSON answer. */
export interface Answer<Body> {
  readonly version: number;
  readonly digest: Digest | undefined;
  readonly body: Body;
}

interface KeptAnswer {
  readonly etag: string;
  readonly text: string;
}

export class Connection {
  readonly #baseUrl: string;
  readonly #headers: Readonly<Record<string, string>>;
  readonly #send: typeof fetch;
  readonly #signal: AbortSignal | undefined;
  readonly #kept = new Map<string, KeptAnswer>();
  readonly timing: Timing;

  /** @throws TypeError where the address or the key cannot be one */
  constructor({ baseUrl, key, fetch: send, signal }: ClientOptions, timing: Timing) {
    if (!baseUrl) throw new TypeError('baseUrl is missing: it is the address of the service.');
    if (typeof key !== 'string' || key === '')
      throw new TypeError('key is missing: the operator gives you one.');
    const url = new URL(baseUrl);
    if (!/^https?:$/.test(url.protocol) || url.username || url.password || url.search || url.hash)
      throw new TypeError(
        'baseUrl has to be an http or https address without name, password, query and hash.',
      );
    if (!/^[!-~]+$/.test(key)) throw new TypeError('key has to be the key that the operator gave.');
    this.#baseUrl = url.href.replace(/\/+$/, '');
    this.#headers = { authorization: `Bearer ${key}`, 'accept-encoding': 'gzip' };
    // Of the platform as it is when it is called, and never as a method: browsers refuse that.
    this.#send = (...args) => (send ?? globalThis.fetch)(...args);
    this.#signal = signal;
    this.timing = timing;
  }

  /** Asks for JSON. @throws MedrefError, or what a signal gives as its reason */
  async json<Body>(path: string, asked: Asked): Promise<Answer<Body>> {
    for (let tries = 1; ; tries += 1) {
      try {
        return await this.#jsonOnce(path, asked);
      } catch (error) {
        await this.recover(error, tries, asked);
      }
    }
  }

  /** Sends one request. @returns its answer, which is a success */
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

  /** Waits until something may be asked again. @throws what went wrong, where it is no use or was tried often enough */
  async recover(error: unknown, tries: number, asked: Patience): Promise<void> {
    const most = asked.tries ?? this.timing.tries;
    if (!isPassing(error) || tries >= most) throw error;
    const { retryAfter } = error;
    if (retryAfter !== null && retryAfter > longest.retryAfter && most < Infinity) throw error;
    asked.onServiceError?.(error);
    await this.pause(retryAfter ?? growing(tries), asked);
  }

  /** Waits for so many seconds, or until somebody ends it: the next request then throws. */
  pause(seconds: number, asked: Patience): Promise<void> {
    const signals = this.#signals(asked);
    return new Promise((resolve) => {
      const end = () => {
        clearTimeout(timer);
        for (const unwatch of unwatching) unwatch();
        resolve();
      };
      const unwatching = signals.map((signal) => onAbort(signal, end));
      // Timers know no longer time than that of 31 bits.
      const timer = setTimeout(end, Math.min(seconds * this.timing.secondMs, 2 ** 31 - 1));
      if (this.isEnded(asked)) end();
    });
  }

  /** Whether somebody has ended this. */
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

  /** Keeps an answer; those that were asked for longest ago are let go. */
  #keep(key: string, answer: KeptAnswer): void {
    this.#kept.delete(key);
    if (answer.text.length <= kept.length) this.#kept.set(key, answer);
    for (const oldest of this.#kept.keys()) {
      if (this.#kept.size <= kept.answers) return;
      this.#kept.delete(oldest);
    }
  }

  #signals({ signal }: Patience): AbortSignal[] {
    return [this.#signal, signal].filter((it) => it !== undefined);
  }
}

/** Seconds that grow from try to try, and differ between clients that were cut off at once. */
export function growing(tries: number): number {
  return Math.min(2 ** (tries - 3), longest.growing) * (0.5 + Math.random() / 2);
}

interface Refused {
  readonly url: string;
  readonly status: number;
  readonly headers: Headers;
  readonly text: string;
}

/** What an answer means that is no success. */
function errorOf({ url, status, headers, text }: Refused): MedrefError {
  const seconds = headers.get('retry-after');
  const retryAfter = seconds && /^\d+$/.test(seconds) ? Number(seconds) : null;
  try {
    const { success, data } = JSON.parse(text);
    if (success === false) return new MedrefError(status, data.name, data.message, { retryAfter });
  } catch {
    // A proxy has said so, or whatever is there instead.
  }
  const error = notMedref(status, url, `was answered with ${status}`);
  return isPassing(error) ? new MedrefError(status, `HTTP ${status}`, error.message, { retryAfter }) : error;
}

function parsed(text: string, url: string): unknown {
  let body: { success?: unknown };
  try {
    body = JSON.parse(text);
  } catch (error) {
    // Answers with gzip may end early without a word of it.
    throw broken(url, 'what came is no JSON', error);
  }
  if (body?.success !== true) throw notMedref(200, url, 'came without "success"');
  return body;
}

/** What an exchange needs to know. */
export interface Exchanged {
  readonly send: typeof fetch;
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly signals: readonly AbortSignal[];
  /** For how long the service may say nothing while something of it is waited for. */
  readonly silenceMs: number;
}

/** Whoever opens one ends it. What a signal gives as its reason is thrown as it is, all else as a MedrefError with status 0. */
export class Exchange {
  readonly #controller = new AbortController();
  readonly #it: Exchanged;
  readonly #unwatch: (() => void)[] = [];
  #response: Response | undefined;

  constructor(it: Exchanged) {
    this.#it = it;
  }

  /** Sends the request. @returns the answer, of which the headers have come */
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

  /** What comes of the body, decoded. */
  async *chunks(): AsyncGenerator<Uint8Array> {
    const reader = this.#response?.body?.getReader();
    for (;;) {
      const read = await this.#withTimeout(async () => reader?.read());
      if (!read?.value) return;
      yield read.value;
    }
  }

  /** The whole body. */
  async text(): Promise<string> {
    const decoder = new TextDecoder();
    let text = '';
    for await (const chunk of this.chunks()) text += decoder.decode(chunk, { stream: true });
    return text + decoder.decode();
  }

  /** Lets go of the connection; of a body that was not read to its end, nothing more comes. */
  end(): void {
    for (const unwatch of this.#unwatch) unwatch();
    this.#controller.abort();
  }

  async #withTimeout<Value>(act: () => Promise<Value>): Promise<Value> {
    const { url, silenceMs } = this.#it;
    const { signal } = this.#controller;
    const silent = broken(url, `nothing came for ${silenceMs / 1000} s`);
    const timer = setTimeout(() => this.#controller.abort(silent), silenceMs);
    try {
      return await act();
    } catch (error) {
      if (signal.aborted) throw signal.reason;
      // What Node says of a broken connection is in the cause.
      const { cause, message } = error as Error;
      throw broken(url, cause instanceof Error ? cause.message : message, error);
    } finally {
      clearTimeout(timer);
    }
  }
}

const watched = new WeakMap<AbortSignal, Set<() => void>>();

/** Calls a function when a signal is aborted. @returns what takes it back */
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
