// The failure of an upstream as one sentence, and how sentences name URLs, times and causes.

import { truncate } from '../../shared/truncate.ts';

/** A failure of the upstream; its message is one plain sentence, with which the import ends. */
export class UpstreamError extends Error {
  override name = 'UpstreamError';
}

/** How much a reason shows of one text that upstream sent. */
const maxQuotedLength = 200;

/** Returns text that upstream sent, as reasons repeat it. */
export function quoted(text: string): string {
  return truncate(text, maxQuotedLength);
}

/** Returns a URL as reasons name it: without credentials and without the query, which may hold a secret. */
export function urlText(url: URL): string {
  return quoted(`${url.protocol}//${url.host}${url.pathname}`);
}

/** Returns the code of an error, as Node and its libraries set it. */
export function codeOf(error: unknown): string {
  return (error as { code?: string } | null)?.code ?? (error instanceof Error ? error.name : 'unknown');
}

/** Returns a time as reasons name it. */
export function seconds(milliseconds: number): string {
  return `${Math.round(milliseconds / 100) / 10} s`;
}

/** What to do about an upstream that is slow or fails. */
export const slowAdvice = 'Ask who runs the upstream, or import again later.';

/** A longer URL is not requested: all servers should support this length (RFC 9110, section 4.1). */
export const maxUrlLength = 8_000;

/** Returns the URL that upstream names, relative to where it names it; null if it is no URL, or too long. */
export function namedUrl(text: string, base: URL): URL | null {
  return text.length <= maxUrlLength && URL.canParse(text, base.href) ? new URL(text, base) : null;
}
