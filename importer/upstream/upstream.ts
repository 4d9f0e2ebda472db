// The upstream of an import: an HTTP server or files; and the validators of its last response.

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
  /** Sent as a Bearer token, only to the origin of the configured URL. */
  readonly token?: string | undefined;
  /** Aborts everything in progress with the signal's reason. */
  readonly signal?: AbortSignal | undefined;
  /** Tests make limits smaller. */
  readonly limits?: Partial<UpstreamLimits> | undefined;
  /** See {@link Access}. */
  readonly lookup?: Access['lookup'];
  readonly ca?: Access['ca'];
}

/** The connection to an upstream during one import. */
export interface Upstream {
  /**
   * Requests a document.
   * @param validators of the last version, so that upstream can respond that nothing has changed
   * @returns the document, or that it has not changed. Files must be in the folder of the first one.
   * @throws UpstreamError, or the signal's reason
   */
  open(url: URL, validators?: Validators | null): Promise<Found>;
  /** Ends all connections. */
  close(): Promise<void>;
}

/** Creates the connection to an upstream. It sends nothing before {@link Upstream.open}; the caller closes it. */
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
   * Opens a file. The operator names the first URL. The list names later URLs, which must be in the folder of the first.
   * @throws UpstreamError, or the signal's reason
   */
  open(url: URL): Promise<UpstreamDocument>;
}

/** Creates a client, which opens nothing before the first `open`. */
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

/** Returns the path of a file: inside the folder, if there is one, both by name and after symbolic links. */
async function pathOf(url: URL, folder: string | null): Promise<{ named: string; real: string }> {
  const named = resolve(fileURLToPath(url));
  if (folder === null) return { named, real: await realpath(named) };
  // Checks the name first, so that errors do not reveal whether a file outside exists.
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
    `${urlText(url)} is outside the folder of the first page. Put all pages into one folder.`,
  );
}

async function openRegularFile(url: URL, path: string) {
  // Checked before opening, because opening a named pipe blocks.
  if ((await stat(path)).isFile()) return open(path);
  throw new UpstreamError(`${urlText(url)} is not a file. Set the URL to the file of the list.`);
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
  EACCES: 'cannot be read by this user. Check its permissions',
  EPERM: 'cannot be read by this user. Check its permissions',
  EMFILE:
    'cannot be opened: this process has reached its limit of open files (EMFILE). Raise it with "ulimit -n"',
  ERR_INVALID_FILE_URL_HOST: 'has a host. Write a local file as file:///path',
};

/** The URL of a list, and the collection that its records belong to. */
export interface ListSource {
  readonly url: URL;
  readonly collection: Collection;
}

interface StoredValidators extends Validators {
  /** A digest of the URL, which may hold a secret, and of the rules that validated its records. */
  readonly source: string;
}

/** Reads the validators of the last list; `null` if they belong to another URL or other rules. */
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

/** Returns validators in stored form; `null` if upstream sent none. */
export function storedValidators(validators: Validators | null, source: ListSource): string | null {
  if (!validators?.etag && !validators?.lastModified) return null;
  const stored: StoredValidators = { source: digestOf(source), ...validators };
  return JSON.stringify(stored);
}

/** The digest includes the rules of records: if they change, the whole list is read again. */
function digestOf({ url, collection }: ListSource): string {
  return createHash('sha256').update(`${collection.revision} ${url.href}`).digest('hex');
}
