// A failure of the upstream as a sentence, and how its sentences name URLs, times and causes.

import { shortened } from '../../shared/shortened.ts';

/** A failure of the upstream, told as one plain sentence; the import ends with it as its reason. */
export class UpstreamError extends Error {
  override name = 'UpstreamError';
}

/** How much a reason shows of one text that upstream sent. */
const maxQuotedLength = 200;

/** Text that upstream sent, as reasons repeat it. */
export function quoted(text: string): string {
  return shortened(text, maxQuotedLength);
}

/** A URL as reasons name it: without credentials and without the query, which may hold a secret. */
export function urlText(url: URL): string {
  return quoted(`${url.protocol}//${url.host}${url.pathname}`);
}

/** The code of an error, as Node and its libraries give it. */
export function codeOf(error: unknown): string {
  return (error as { code?: string } | null)?.code ?? (error instanceof Error ? error.name : 'unknown');
}

/** A time as reasons name it. */
export function seconds(milliseconds: number): string {
  return `${Math.round(milliseconds / 100) / 10} s`;
}

/** What to do about an upstream that is slow or unwell. */
export const slowAdvice = 'Ask who runs the upstream, or import again later.';
