// Sends publications, candidates, refusals and failures to a webhook, with retries. Undelivered notices are logged.

import { createHmac, randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Logger } from 'pino';
import { type ImportOutcome, type ImportReport, type ImportResult, reportOf } from './report.ts';

/** The events of a webhook; a rollback is a publication. */
export type NoticeEvent = 'published' | 'candidate' | 'refused' | 'failed';

/** The body of a request to a webhook; members are in this order. */
export interface Notice {
  /** The same for each attempt, so that the receiver can recognize duplicates. */
  readonly id: string;
  readonly event: NoticeEvent;
  readonly collection: string;
  /** The published version, or the candidate; `null` without one. */
  readonly version: number | null;
  /** The time of the event, ISO 8601. */
  readonly time: string;
  readonly report: ImportReport;
  /** The candidate that a refused import left, or that waits; `null` without one. */
  readonly candidate: number | null;
  /** Who did it: user and host, or `schedule`; `null` if unknown. */
  readonly by: string | null;
  /** The `--reason` of the operator; `null` without one. */
  readonly why: string | null;
}

const events: Partial<Record<ImportOutcome, NoticeEvent>> = {
  published: 'published',
  'rolled-back': 'published',
  candidate: 'candidate',
  refused: 'refused',
  failed: 'failed',
};

/** The settings of the webhook. */
export interface WebhookSettings {
  /** `undefined`: no webhook. */
  readonly webhookUrl: URL | undefined;
  /** The key that signs notices; `undefined`: unsigned. */
  readonly webhookSecret: string | undefined;
}

/** Limits of a webhook. */
export interface WebhookLimits {
  /** Time until an attempt gets a response, in ms. */
  readonly tryMs: number;
  /** Waits before further attempts, in ms; after the last attempt the notice is dropped and logged. */
  readonly waitsMs: readonly number[];
  /** How long the end of a command waits for notices, in ms. */
  readonly finishMs: number;
  /** How many notices may be in progress at once. */
  readonly inProgress: number;
}

/** The limits in production. */
export const webhookLimits: WebhookLimits = Object.freeze({
  tryMs: 10_000,
  waitsMs: [1_000, 2_000, 10_000, 60_000, 300_000],
  finishMs: 5_000,
  inProgress: 100,
});

/** Notifies a webhook. */
export interface Webhook {
  /** Starts to send a publication, candidate, refusal or failure; ignores other outcomes. Never throws and never waits. */
  notify(report: ImportReport & Partial<Pick<ImportResult, 'by' | 'why' | 'candidate'>>): void;
  /** Waits briefly for notices in progress, then drops the rest. Call it at the end of a command. */
  finish(): Promise<void>;
}

/** Creates a webhook. Tests shorten the limits. */
export function createWebhook(
  { webhookUrl: url, webhookSecret: secret }: WebhookSettings,
  logger: Logger,
  limits: WebhookLimits = webhookLimits,
): Webhook {
  const sending = new Set<Promise<void>>();
  const ending = new AbortController();
  return {
    notify: (result) => {
      const report = reportOf(result);
      const event = events[report.outcome];
      if (!url || !event) return;
      const { collection, version } = report;
      const facts = { id: randomUUID(), event, collection, version };
      const { by = null, why = null, candidate = null } = result;
      const notice: Notice = { ...facts, time: new Date().toISOString(), report, candidate, by, why };
      const log = logger.child({ webhook: url.origin, notice: facts });
      if (sending.size >= limits.inProgress) {
        log.error('A notice to the webhook was dropped: too many notices are in progress.');
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
  /** Aborted at the end of the command. */
  readonly ending: AbortSignal;
}

/** Sends a notice until the webhook accepts it or no attempt is left. Never rejects. */
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
      log.debug({ tries }, 'The webhook accepted a notice.');
      return;
    }
    const waitMs = limits.waitsMs[tries - 1];
    const facts = { tries, reason: refusal };
    if (waitMs !== undefined && !ending.aborted) {
      log.warn({ ...facts, waitMs }, 'The webhook did not accept a notice; retrying.');
      await sleep(waitMs, null, { signal: ending }).catch(() => undefined);
    }
    if (waitMs === undefined || ending.aborted) {
      log.error(facts, 'A notice to the webhook was dropped after the last attempt.');
      return;
    }
  }
}

/** Returns `sha256=` and the HMAC of the body, in hexadecimal digits. */
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
    // Redirects are not followed: a redirect could send the notice anywhere.
    const response = await fetch(url, { method: 'POST', redirect: 'manual', signal, ...what });
    await response.body?.cancel();
    if (response.ok) return null;
    const isRedirect = response.status >= 300 && response.status < 400;
    return `It responded with ${response.status}${isRedirect ? ', and redirects are not followed' : ''}.`;
  } catch (error) {
    if (ending.aborted) return 'It had not responded when the command ended.';
    if (late.aborted) return `It did not respond within ${timeMs / 1_000} s.`;
    return `It cannot be reached (${codeOf(error as Error)}).`;
  }
}

/** Returns Node's error code, which fetch stores in the cause. Error messages may contain the URL, so they are not shown. */
function codeOf({ name, cause }: Error): string {
  return (cause as { code?: string } | undefined)?.code ?? name;
}
