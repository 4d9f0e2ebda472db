// Notifies a webhook of publications, refusals and failures, and retries; a notice that was never accepted is in the log.

import { createHmac, randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Logger } from 'pino';
import type { ImportOutcome, ImportReport } from './report.ts';

/** What a webhook is notified of; a rollback is a publication. */
export type NoticeEvent = 'published' | 'refused' | 'failed';

/** What a webhook is sent, in this order of members. */
export interface Notice {
  /** The same at each attempt, so that the receiver can recognize a repetition. */
  readonly id: string;
  readonly event: NoticeEvent;
  readonly collection: string;
  /** The version that was published; `null` if none was. */
  readonly version: number | null;
  /** When it happened, ISO 8601. */
  readonly time: string;
  readonly report: ImportReport;
}

const events: Partial<Record<ImportOutcome, NoticeEvent>> = {
  published: 'published',
  'rolled-back': 'published',
  refused: 'refused',
  failed: 'failed',
};

/** Where notices go. */
export interface WebhookSettings {
  /** `undefined`: there is no webhook. */
  readonly webhookUrl: URL | undefined;
  /** Signs the notices; `undefined`: they are not signed. */
  readonly webhookSecret: string | undefined;
}

/** Limits of a webhook. */
export interface WebhookLimits {
  /** Until an attempt is answered, in ms. */
  readonly tryMs: number;
  /** Before each further attempt, in ms; after the last one the notice is given up. */
  readonly waitsMs: readonly number[];
  /** How long the end of a command waits for notices in progress, in ms. */
  readonly finishMs: number;
  /** Notices that may be in progress at once. */
  readonly underWay: number;
}

/** The limits that are used outside of tests. */
export const webhookLimits: WebhookLimits = Object.freeze({
  tryMs: 10_000,
  waitsMs: [1_000, 2_000, 10_000, 60_000, 300_000],
  finishMs: 5_000,
  underWay: 100,
});

/** Notifies a webhook. */
export interface Webhook {
  /** Starts to send a publication, a refusal or a failure, and ignores other outcomes. Never throws, never waits. */
  tell(report: ImportReport): void;
  /** Waits a little for notices in progress, then gives up the rest. To be called at the end of a command. */
  finish(): Promise<void>;
}

/** Makes a webhook; nothing is sent before its first notice. Tests shorten the limits. */
export function createWebhook(
  { webhookUrl: url, webhookSecret: secret }: WebhookSettings,
  logger: Logger,
  limits: WebhookLimits = webhookLimits,
): Webhook {
  const sending = new Set<Promise<void>>();
  const ending = new AbortController();
  return {
    tell: (report) => {
      const event = events[report.outcome];
      if (!url || !event) return;
      const { collection, version } = report;
      const facts = { id: randomUUID(), event, collection, version };
      const notice: Notice = { ...facts, time: new Date().toISOString(), report };
      const log = logger.child({ webhook: url.origin, notice: facts });
      if (sending.size >= limits.underWay) {
        log.error('A notice was not sent to the webhook: too many others are waiting for it.');
        return;
      }
      const delivery = deliver({ url, secret, notice, log, limits, ending: ending.signal });
      sending.add(delivery);
      void delivery.finally(() => sending.delete(delivery));
    },
    finish: async () => {
      const grace = new AbortController();
      const timeout = sleep(limits.finishMs, null, { signal: grace.signal }).catch(() => undefined);
      await Promise.race([Promise.all(sending), timeout]);
      grace.abort();
      ending.abort();
      await Promise.all(sending);
    },
  };
}

interface Delivery {
  readonly url: URL;
  readonly secret: string | undefined;
  readonly notice: Notice;
  readonly log: Logger;
  readonly limits: WebhookLimits;
  /** Aborted when the command ends. */
  readonly ending: AbortSignal;
}

/** Sends a notice until the webhook accepts it, or there is no further attempt. Never rejects. */
async function deliver({ url, secret, notice, log, limits, ending }: Delivery): Promise<void> {
  const body = JSON.stringify(notice);
  const headers = {
    'content-type': 'application/json',
    'user-agent': 'medref',
    ...(secret !== undefined && { 'medref-signature': signatureOf(body, secret) }),
  };
  for (let tries = 1; ; tries++) {
    const refusal = await post(url, { body, headers, timeMs: limits.tryMs, ending });
    if (refusal === null) {
      log.debug({ tries }, 'The webhook took a notice.');
      return;
    }
    const waitMs = limits.waitsMs[tries - 1];
    const facts = { tries, reason: refusal };
    if (waitMs !== undefined && !ending.aborted) {
      log.warn({ ...facts, waitMs }, 'The webhook did not take a notice; it is tried again.');
      await sleep(waitMs, null, { signal: ending }).catch(() => undefined);
    }
    if (waitMs === undefined || ending.aborted) {
      log.error(facts, 'A notice could not be delivered to the webhook, and is given up.');
      return;
    }
  }
}

/** Returns `sha256=` and the HMAC of the body under the secret, in hexadecimal digits. */
function signatureOf(body: string, secret: string): string {
  return `sha256=${createHmac('sha256', secret).update(body).digest('hex')}`;
}

/** Sends a notice once. @returns why it was not accepted, as a sentence; `null` if it was */
async function post(
  url: URL,
  {
    timeMs,
    ending,
    ...what
  }: { body: string; headers: Record<string, string>; timeMs: number; ending: AbortSignal },
): Promise<string | null> {
  const late = AbortSignal.timeout(timeMs);
  try {
    const signal = AbortSignal.any([late, ending]);
    // A redirect could lead anywhere, and the notice with it.
    const answer = await fetch(url, { method: 'POST', redirect: 'manual', signal, ...what });
    await answer.body?.cancel();
    if (answer.ok) return null;
    const isRedirect = answer.status >= 300 && answer.status < 400;
    return `It answered ${answer.status}${isRedirect ? ', and redirects are not followed' : ''}.`;
  } catch (error) {
    if (ending.aborted) return 'It had not answered when the command ended.';
    if (late.aborted) return `It did not answer within ${timeMs / 1_000} s.`;
    return `It could not be asked (${codeOf(error as Error)}).`;
  }
}

/** Returns Node's own error code, which fetch has in the cause of its error. No message of an error: it may contain the URL. */
function codeOf({ name, cause }: Error): string {
  return (cause as { code?: string } | undefined)?.code ?? name;
}
