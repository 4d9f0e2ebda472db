// In: reports. Out: a webhook is told of them, tried again where it did not take them; what it never took is in the log.
// Nobody waits for it but the end of a command, and that not for long.

import { createHmac } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Logger } from 'pino';
import type { ImportReport } from '../job/import-report.ts';
import { type Notice, noticeOf } from './notice.ts';

/** Where notices go. */
export interface WebhookSettings {
  /** `undefined`: nobody is told anything. */
  readonly webhookUrl: URL | undefined;
  /** What notices are signed with; `undefined`: they are not signed. */
  readonly webhookSecret: string | undefined;
}

/** What a webhook is allowed. */
export interface WebhookLimits {
  /** Until a try is answered, in ms. */
  readonly tryMs: number;
  /** Before each further try, in ms; when they have been waited for, the notice is given up. */
  readonly waitsMs: readonly number[];
  /** How long the end of a command waits for what is under way, in ms. */
  readonly finishMs: number;
  /** Notices that may be under way at once. */
  readonly underWay: number;
}

/** The limits that hold outside of tests. */
export const webhookLimits: WebhookLimits = Object.freeze({
  tryMs: 10_000,
  waitsMs: [1_000, 2_000, 10_000, 60_000, 300_000],
  finishMs: 5_000,
  underWay: 100,
});

/** Tells a webhook of what happens. */
export interface Webhook {
  /** Begins to tell it of a publication, a refusal or a failure; of anything else, nothing. Never throws, never waits. */
  tell(report: ImportReport): void;
  /** Waits a little for what is under way, and gives up the rest. To be called at the end of a command. */
  finish(): Promise<void>;
}

/** Makes a webhook; nothing is sent before its first notice. Tests shorten the limits. */
export function createWebhook(
  { webhookUrl: url, webhookSecret: secret }: WebhookSettings,
  logger: Logger,
  limits: WebhookLimits = webhookLimits,
): Webhook {
  const underWay = new Set<Promise<void>>();
  const ending = new AbortController();
  return {
    tell: (report) => {
      const notice = url && noticeOf(report);
      if (!notice) return;
      const log = logger.child({ webhook: url.origin, notice: factsOf(notice) });
      if (underWay.size >= limits.underWay) {
        log.error('A notice was not sent to the webhook: too many others are waiting for it.');
        return;
      }
      const delivery = deliver({ url, secret, notice, log, limits, ending: ending.signal });
      underWay.add(delivery);
      void delivery.finally(() => underWay.delete(delivery));
    },
    finish: async () => {
      const grace = new AbortController();
      const late = sleep(limits.finishMs, null, { signal: grace.signal }).catch(() => undefined);
      await Promise.race([Promise.all(underWay), late]);
      grace.abort();
      ending.abort();
      await Promise.all(underWay);
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

/** Tries until the webhook takes it, or there is no further try. Never rejects. */
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

/** `sha256=` and the HMAC of the body under the secret, in hexadecimal digits. */
function signatureOf(body: string, secret: string): string {
  return `sha256=${createHmac('sha256', secret).update(body).digest('hex')}`;
}

/** Sends a notice once. @returns why it was not taken, as a sentence; `null` where it was */
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

/** Node's own code of what went wrong, which fetch has in the cause of its error. No text of an error: it may have the URL. */
function codeOf({ name, cause }: Error): string {
  return (cause as { code?: string } | undefined)?.code ?? name;
}

function factsOf({ id, event, collection, version }: Notice): object {
  return { id, event, collection, version };
}
