// The logs of requests and of service errors, each with a limit of lines.

import { LRUCache } from 'lru-cache';
import type { Logger } from 'pino';
import { truncate } from '../../shared/text.ts';
import type { ServiceError } from '../errors.ts';
import type { CompletedRequest } from '../http.ts';

/** Which requests are logged: none, responses of 4xx and 5xx, or all. */
export type AccessLogLevel = 'off' | 'errors' | 'all';

/** Lines per second for 5xx, for 4xx, and for all others: a flood of one kind hides no other kind. */
const maxLines = 100;

const secondMs = 1_000;

/** Longer targets are cut, in characters. */
const maxTargetLength = 1_000;

/** Text that looks like an API key, percent-encoded or not. */
const keyLike = /medref(?:_|%5f)[\w%-]{16,}/gi;

/** A query parameter: its name and its value. */
const parameter = /([?&;])([^?&;=#]*)=([^&;#]*)/g;

/** A parameter whose value is a secret. */
const secretName = /key|token|secret|passw|auth|credential|signature/i;

/** Replaces a secret. */
const hidden = '***';

/** Writes the access log of one process. */
export class AccessLog {
  readonly #logger: Logger;
  readonly #level: AccessLogLevel;
  readonly #maxLines: number;
  /** The current second: lines written by kind, and requests left out by status. */
  readonly #written = new Map<number, number>();
  readonly #leftOut = new Map<string, number>();
  #timer: NodeJS.Timeout | undefined;

  /** Tests lower the number of lines. */
  constructor(
    logger: Logger,
    level: AccessLogLevel,
    { linesASecond = maxLines }: { readonly linesASecond?: number } = {},
  ) {
    this.#logger = logger;
    this.#level = level;
    this.#maxLines = linesASecond;
  }

  /** Logs a request when its response has ended. */
  write(it: CompletedRequest): void {
    if (this.#level === 'off' || (this.#level === 'errors' && (it.status ?? 0) < 400)) return;
    this.#timer ??= setTimeout(() => this.endSecond(), secondMs).unref();
    const kind = Math.max(3, Math.floor((it.status ?? 0) / 100));
    const written = this.#written.get(kind) ?? 0;
    if (written < this.#maxLines) {
      this.#written.set(kind, written + 1);
      this.#logger.info(lineOf(it), 'Request completed.');
    } else {
      const status = String(it.status);
      this.#leftOut.set(status, (this.#leftOut.get(status) ?? 0) + 1);
    }
  }

  /** Logs how many requests were left out; also called when the process ends. */
  endSecond(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    this.#written.clear();
    if (this.#leftOut.size === 0) return;
    const requests = [...this.#leftOut.values()].reduce((sum, count) => sum + count);
    this.#logger.info(
      { requests, byStatus: Object.fromEntries(this.#leftOut) },
      'Too many requests in one second to log each.',
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

/** Hides keys and secrets in a client's text. If only the decoded text has one, the whole text is hidden. */
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

/** An error that has not occurred for this long, in ms, has ended; the next occurrence is logged again. */
const endedAfterMs = 60_000;

/** How many errors are remembered. */
const maxRemembered = 1_000;

/** Logs when a service error begins and ends. Tests shorten the time. */
export class ServiceErrorLog {
  readonly #logger: Logger;
  readonly #ongoing: LRUCache<string, true>;

  constructor(logger: Logger, { endsAfterMs = endedAfterMs }: { readonly endsAfterMs?: number } = {}) {
    this.#logger = logger;
    this.#ongoing = new LRUCache({ max: maxRemembered, ttl: endsAfterMs, updateAgeOnGet: true });
  }

  /** Records the cause of a 500 or 503 with the id of the request. Causes that are logged elsewhere are skipped. */
  record({ cause, status, reason }: ServiceError, requestId: string): void {
    if (reason === null || !this.#begins(cause)) return;
    this.#logger[status === 500 ? 'error' : 'warn']({ cause, reason, requestId }, `Requests get ${status}.`);
  }

  /** Records damage in Redis. */
  recordDamage(sentence: string): void {
    if (this.#begins(`damage ${sentence}`)) this.#logger.error(sentence);
  }

  #begins(name: string): boolean {
    if (this.#ongoing.get(name)) return false;
    this.#ongoing.set(name, true);
    return true;
  }
}
