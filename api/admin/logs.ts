// The logs of requests and of service errors, each with a limit of lines.

import { LRUCache } from 'lru-cache';
import type { Logger } from 'pino';
import { truncate } from '../../shared/text.ts';
import type { ServiceError } from '../errors.ts';
import type { CompletedRequest } from '../http.ts';

/** Which requests have a line: none, those that were answered with 4xx and 5xx, or all. */
export type AccessLogLevel = 'off' | 'errors' | 'all';

/** Lines a second of 5xx, of 4xx, and of all others: so a flood of one kind hides none of another. */
const maxLines = 100;

const secondMs = 1_000;

/** How much of a target is logged, in characters. */
const maxTargetLength = 1_000;

/** What looks like one of our keys, percent-encoded or not. */
const keyLike = /medref(?:_|%5f)[\w%-]{16,}/gi;

/** A parameter of a query: its name and its value. */
const parameter = /([?&;])([^?&;=#]*)=([^&;#]*)/g;

/** A name that says that the value is a secret. */
const secretName = /key|token|secret|passw|auth|credential|signature/i;

/** What is logged in the place of a secret. */
const hidden = '***';

/** Writes the access log of one process. */
export class AccessLog {
  readonly #logger: Logger;
  readonly #level: AccessLogLevel;
  readonly #maxLines: number;
  /** Of the second that goes on: lines that were written by kind, requests that were left out by status. */
  readonly #written = new Map<number, number>();
  readonly #leftOut = new Map<string, number>();
  #timer: NodeJS.Timeout | undefined;

  /** Tests lower the bound of lines. */
  constructor(
    logger: Logger,
    level: AccessLogLevel,
    { linesASecond = maxLines }: { readonly linesASecond?: number } = {},
  ) {
    this.#logger = logger;
    this.#level = level;
    this.#maxLines = linesASecond;
  }

  /** Takes a request as its answer ends. */
  write(it: CompletedRequest): void {
    if (this.#level === 'off' || (this.#level === 'errors' && (it.status ?? 0) < 400)) return;
    this.#timer ??= setTimeout(() => this.endSecond(), secondMs).unref();
    const kind = Math.max(3, Math.floor((it.status ?? 0) / 100));
    const written = this.#written.get(kind) ?? 0;
    if (written < this.#maxLines) {
      this.#written.set(kind, written + 1);
      this.#logger.info(lineOf(it), 'A request was answered.');
    } else {
      const status = String(it.status);
      this.#leftOut.set(status, (this.#leftOut.get(status) ?? 0) + 1);
    }
  }

  /** Tells of what was left out; also called when the process ends. */
  endSecond(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    this.#written.clear();
    if (this.#leftOut.size === 0) return;
    const requests = [...this.#leftOut.values()].reduce((sum, count) => sum + count);
    this.#logger.info(
      { requests, byStatus: Object.fromEntries(this.#leftOut) },
      'More requests came in a second than are logged one by one.',
    );
    this.#leftOut.clear();
  }
}

function lineOf({
  requestId,
  method,
  target,
  route,
  status,
  ms,
  waitedMs,
  bytes,
  isWhole,
  client,
  address,
}: CompletedRequest) {
  return {
    ...{ requestId: withoutKeys(requestId), method, path: target && withoutKeys(target), route, status },
    ...{ ms: tenths(ms), ...(waitedMs !== null && { waitedMs: tenths(waitedMs) }) },
    ...{ bytes, isWhole, client, address },
  };
}

function tenths(ms: number): number {
  return Math.round(ms * 10) / 10;
}

/** A text of a client as it may be logged: all of it hidden where it tells of a key only when it is decoded. */
function withoutKeys(text: string): string {
  const bare = text
    .replace(parameter, (all, mark, name) =>
      secretName.test(decoded(name)) ? `${mark}${name}=${hidden}` : all,
    )
    .replace(keyLike, hidden);
  return decoded(bare).search(keyLike) === -1 ? truncate(bare, maxTargetLength) : hidden;
}

function decoded(text: string): string {
  return text.replace(/%([0-9a-f]{2})/gi, (_, hex: string) => String.fromCharCode(Number.parseInt(hex, 16)));
}

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
