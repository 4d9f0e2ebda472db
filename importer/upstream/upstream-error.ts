// A failure of the upstream as a sentence, and how its sentences name URLs, times and causes.

/** A failure of the upstream, told as one plain sentence; the import ends with it as its reason. */
export class UpstreamError extends Error {
  override name = 'UpstreamError';
}

/** A URL as reasons name it: without credentials and without the query, which may hold a secret. */
export function urlText(url: URL): string {
  return `${url.protocol}//${url.host}${url.pathname}`;
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
