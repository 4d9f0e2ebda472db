// The upstream of an import: an HTTP server or files, and the validators of its last response.

import { createHash } from 'node:crypto';
import { open, realpath, stat } from 'node:fs/promises';
import { dirname, relative, resolve, sep } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { Collection } from '../../shared/collections/define.ts';
import type { Redis } from '../../shared/redis/connections.ts';
import type { CollectionKeys } from '../../shared/store/keys.ts';
import {
  type Access,
  codeOf,
  UpstreamError,
  type UpstreamLimits,
  upstreamLimits,
  urlText,
} from './access.ts';
import { documentOf, type Found, hasLinesExtension, type UpstreamDocument, type Validators } from './body.ts';
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

/** Opens files. */
export interface FileClient {
  /**
   * @returns the document. Throws {@link UpstreamError}, or the signal's reason. The first URL is the operator's; the
   * later ones are what the list names as its next pages, and lead nowhere outside the folder of the first.
   */
  open(url: URL): Promise<UpstreamDocument>;
}

/** Makes a client; nothing is opened before its first `open`. */
export function createFileClient({ limits, signal }: Access): FileClient {
  let folder: string | null = null;
  return {
    open: async (url) => {
      signal.throwIfAborted();
      const path = await tried(url, () => pathOf(url, folder));
      folder ??= dirname(path.named);
      const file = await tried(url, () => openRegularFile(url, path.real));
      const raw = file.createReadStream({ highWaterMark: 64 * 1024 });
      const lines = hasLinesExtension(url);
      const { size: length } = await file.stat();
      return documentOf({ url, raw, length, limits, signal, lines, header: () => null });
    },
  };
}

/** Where a file is; within the folder, if there is one, both as it is named and as links lead to it. */
async function pathOf(url: URL, folder: string | null): Promise<{ named: string; real: string }> {
  const named = resolve(fileURLToPath(url));
  if (folder === null) return { named, real: await realpath(named) };
  // As it is named first, so that nothing is told of what is outside, not even whether it is there.
  if (!isInside(folder, named)) throw outside(url);
  const real = await realpath(named);
  if (!isInside(await realpath(folder), real)) throw outside(url);
  return { named, real };
}

function isInside(folder: string, path: string): boolean {
  const way = relative(folder, path);
  return way !== '..' && !way.startsWith(`..${sep}`);
}

function outside(url: URL): UpstreamError {
  return new UpstreamError(
    `${urlText(url)} is outside the folder of the list's first file, where its next pages must be. Put them there.`,
  );
}

async function openRegularFile(url: URL, path: string) {
  // Asked before opening, because opening a named pipe waits for its writer.
  if ((await stat(path)).isFile()) return open(path);
  throw new UpstreamError(`${urlText(url)} is not a file. Name the file that holds the list.`);
}

async function tried<T>(url: URL, step: () => Promise<T>): Promise<T> {
  try {
    return await step();
  } catch (error) {
    if (error instanceof UpstreamError) throw error;
    const what = fileFailures[codeOf(error)] ?? `cannot be read (${codeOf(error)}). Check the path`;
    throw new UpstreamError(`${urlText(url)} ${what}.`);
  }
}

const fileFailures: Record<string, string> = {
  ENOENT: 'does not exist. Check the path',
  ENOTDIR: 'does not exist. Check the path',
  EACCES: 'may not be read by this user. Check its permissions',
  EPERM: 'may not be read by this user. Check its permissions',
  EMFILE:
    'cannot be opened: this process has reached its limit of open files (EMFILE). Raise it with "ulimit -n"',
  ERR_INVALID_FILE_URL_HOST: 'names a host. A file on this machine is written file:///path',
};

/** Where a list comes from, and what is made of it. */
export interface ListSource {
  readonly url: URL;
  readonly collection: Collection;
}

interface StoredValidators extends Validators {
  /** Digest of the URL they came from, which may hold a secret, and of what records were made of it then. */
  readonly source: string;
}

/** Reads the validators of the last list, or `null` if they are of another URL or of other rules. */
export async function readValidators(
  redis: Redis,
  keys: CollectionKeys,
  source: ListSource,
): Promise<Validators | null> {
  const text = await redis.get(keys.validators);
  if (text === null) return null;
  const { source: from, etag, lastModified } = JSON.parse(text) as StoredValidators;
  return from === digestOf(source) ? { etag, lastModified } : null;
}

/** Returns validators as they are stored with a version; `null` if upstream gave none. */
export function storedValidators(validators: Validators | null, source: ListSource): string | null {
  if (!validators?.etag && !validators?.lastModified) return null;
  const stored: StoredValidators = { source: digestOf(source), ...validators };
  return JSON.stringify(stored);
}

/** If the rules of records change, the same list makes another content, so all of it is read again. */
function digestOf({ url, collection }: ListSource): string {
  return createHash('sha256').update(`${collection.revision} ${url.href}`).digest('hex');
}
