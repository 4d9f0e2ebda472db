// One request under way and its answer: ended when a signal says so, or when nothing comes for too long.

import { onAbort } from './abort-watch.ts';
import { broken } from './medref-error.ts';

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
