// Opens the documents that file: URLs name, all of them in the folder of the first one.

import { open, realpath, stat } from 'node:fs/promises';
import { dirname, relative, resolve, sep } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { Access } from './access.ts';
import { documentOf, hasLinesExtension, type UpstreamDocument } from './body.ts';
import { codeOf, UpstreamError, urlText } from './error.ts';

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
