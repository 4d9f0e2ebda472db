// In: the URL of a list, and the version of it that is known. Out: what its upstream, if it is a medref, says of later ones;
// it is asked to wait for one.

import { UpstreamError, upstreamLimits, urlText } from './access.ts';
import { medrefVersion } from './body.ts';
import { createHttpClient } from './http.ts';

/** How long upstream is asked to wait, in s: proxies usually give up an answer after 60. */
const waitSeconds = 50;

/** What came of a wait. */
export type Watched =
  /** Another version is live. */
  | { readonly kind: 'published'; readonly version: string }
  /** Nothing was published; it may have been asked for less time than it was to wait. */
  | { readonly kind: 'nothing'; readonly waitedMs: number }
  /** Upstream does not know the version, or not what changed since. */
  | { readonly kind: 'lost' }
  /** Upstream tells of no publications, and never will as it is. */
  | { readonly kind: 'unable'; readonly reason: string }
  | { readonly kind: 'failed'; readonly reason: string; readonly retryAfterMs: number };

/** The watch over one list. */
export interface PublicationWatch {
  /** Waits until another version than this one is live, for some time. Throws the signal's reason. */
  next(since: string): Promise<Watched>;
  /** Ends all connections. */
  close(): Promise<void>;
}

/** Makes the watch over a list; whoever made it closes it. */
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

/** Where the changes of a list are: below it, with none of its parameters. */
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
  if (status === 200) return { kind: 'unable', reason: `${name} is not of a medref.` };
  if ([400, 404, 405].includes(status))
    return {
      kind: 'unable',
      reason: `${name} answered ${status}: a medref of an older release cannot wait.`,
    };
  const advice = status === 401 || status === 403 ? ' Check the token that is sent to it.' : '';
  return { kind: 'failed', reason: `${name} answered ${status}.${advice}`, retryAfterMs };
}
