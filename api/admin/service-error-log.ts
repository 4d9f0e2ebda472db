// In: what keeps requests from being answered, each time. Out: a line of the log when it begins, not for each request.

import { LRUCache } from 'lru-cache';
import type { Logger } from 'pino';
import type { ServiceError } from '../service-error.ts';

/** What was not met for this long has ended: met again, it is told again. In ms. */
const endedAfterMs = 60_000;

/** How many of them are remembered. */
const maxRemembered = 1_000;

/** Logs when a service error begins and ends. Tests shorten the time after which it has ended. */
export class ServiceErrorLog {
  readonly #logger: Logger;
  readonly #goingOn: LRUCache<string, true>;

  constructor(logger: Logger, { endsAfterMs = endedAfterMs }: { readonly endsAfterMs?: number } = {}) {
    this.#logger = logger;
    this.#goingOn = new LRUCache({ max: maxRemembered, ttl: endsAfterMs, updateAgeOnGet: true });
  }

  /**
   * Takes what has kept a request from being answered, with the id of that request; what is told elsewhere as it happens is
   * not told here.
   */
  meet({ cause, status, reason }: ServiceError, requestId: string): void {
    if (reason === null || !this.#begins(cause)) return;
    this.#logger[status === 500 ? 'error' : 'warn'](
      { cause, reason, requestId },
      `Requests are answered with ${status}.`,
    );
  }

  /** Takes what is not as it was stored, as a sentence. */
  meetDamage(sentence: string): void {
    if (this.#begins(`damage ${sentence}`)) this.#logger.error(sentence);
  }

  #begins(name: string): boolean {
    if (this.#goingOn.get(name)) return false;
    this.#goingOn.set(name, true);
    return true;
  }
}
