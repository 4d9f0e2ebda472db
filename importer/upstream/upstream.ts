// In: the URL of a document, http(s) or file. Out: its decoded bytes, or one plain sentence that says why there are none.

import { type Access, type UpstreamLimits, upstreamLimits } from './access.ts';
import type { Found, Validators } from './body.ts';
import { createFileClient } from './file.ts';
import { createHttpClient } from './http.ts';

/** How to reach the upstream. */
export interface UpstreamOptions {
  /** Sent as a Bearer credential, never to another origin than that of the URL asked for. */
  readonly token?: string | undefined;
  /** Ends whatever is going on, with the signal's reason. */
  readonly signal?: AbortSignal | undefined;
  /** Tests make limits smaller. */
  readonly limits?: Partial<UpstreamLimits> | undefined;
  /** See {@link Access}. */
  readonly lookup?: Access['lookup'];
  readonly ca?: Access['ca'];
}

/** The connection to an upstream, for the length of one import. */
export interface Upstream {
  /**
   * Asks for a document.
   * @param validators of the last version; with them an upstream may answer that nothing has changed.
   * @returns the document, or that it has not changed. Throws {@link UpstreamError}, or the signal's reason. Of
   * files, only those in the folder of the first one.
   */
  open(url: URL, validators?: Validators | null): Promise<Found>;
  /** Ends all connections. */
  close(): Promise<void>;
}

/** Makes the connection to an upstream; nothing is sent before {@link Upstream.open}, whoever made it closes it. */
export function createUpstream(options: UpstreamOptions = {}): Upstream {
  const limits = { ...upstreamLimits, ...options.limits };
  const { token, signal = new AbortController().signal, lookup, ca } = options;
  const access = { limits, token, signal, lookup, ca };
  const http = createHttpClient(access);
  const files = createFileClient(access);
  return {
    open: (url, validators = null) =>
      url.protocol === 'file:' ? files.open(url) : http.open(url, validators),
    close: () => http.close(),
  };
}
