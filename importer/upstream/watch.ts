// Waits for a publication of an upstream medref by long polls.

import { UpstreamError, upstreamLimits, urlText } from './access.ts';
import { medrefVersion } from './body.ts';
import { createHttpClient } from './http.ts';

/** The wait that upstream is asked for, in s: proxies usually time out after 60 s. */
const waitSeconds = 50;

/** The result of a wait. */
export type Watched =
  /** A newer version is live. */
  | { readonly kind: 'published'; readonly version: string }
  /** Nothing was published. `waitedMs` may be shorter than requested. */
  | { readonly kind: 'nothing'; readonly waitedMs: number }
  /** Upstream does not know the version, or no longer keeps its changes. */
  | { readonly kind: 'lost' }
  /** Upstream offers no long poll. */
  | { readonly kind: 'unable'; readonly reason: string }
  | { readonly kind: 'failed'; readonly reason: string; readonly retryAfterMs: number };

/** The watch over one list. */
export interface PublicationWatch {
  /** Waits until a newer version than this one is live, or for a limited time. Throws the signal's reason. */
  next(since: string): Promise<Watched>;
  /** Ends all connections. */
  close(): Promise<void>;
}

/** Creates the watch over a list; the caller closes it. */
export function watchPublications({
  url,
  token,
  signal,
}: {
  readonly url: URL;
  readonly token: string | undefined;
  readonly signal: AbortSignal;
}): PublicationWatch {
  const mostMs = (waitSeconds + 10) * 1_000;
  const limits = { ...upstreamLimits, headersMs: mostMs, requestMs: mostMs };
  const http = createHttpClient({ limits, token, signal });
  return {
    async next(since) {
      const from = performance.now();
      try {
        const target = changesUrl(url, since);
        return watchedOf(await http.head(target), { since, target, waitedMs: performance.now() - from });
      } catch (error) {
        signal.throwIfAborted();
        if (!(error instanceof UpstreamError)) throw error;
        return { kind: 'failed', reason: error.message, retryAfterMs: 0 };
      }
    },
    close: () => http.close(),
  };
}

/** Returns the URL of the list's changes, without the list's parameters. */
function changesUrl(list: URL, since: string): URL {
  const url = new URL(list);
  url.pathname = `${list.pathname.replace(/\/+$/, '')}/changes`;
  url.search = `?since=${since}&wait=${waitSeconds}&per-page=1`;
  return url;
}

function watchedOf(
  { status, header, retryAfterMs }: Awaited<ReturnType<ReturnType<typeof createHttpClient>['head']>>,
  { since, target, waitedMs }: { since: string; target: URL; waitedMs: number },
): Watched {
  const name = urlText(target);
  const version = medrefVersion(header('medref-version'));
  if (status === 200 && version !== null)
    return version === since ? { kind: 'nothing', waitedMs } : { kind: 'published', version };
  if (status === 410) return { kind: 'lost' };
  if (status === 200) return { kind: 'unable', reason: `${name} does not belong to a medref.` };
  if ([400, 404, 405].includes(status))
    return {
      kind: 'unable',
      reason: `${name} responded with ${status}: an older release of medref, without long polls.`,
    };
  const advice = status === 401 || status === 403 ? ' Check its token.' : '';
  return { kind: 'failed', reason: `${name} responded with ${status}.${advice}`, retryAfterMs };
}
