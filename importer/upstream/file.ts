// In: a file: URL. Out: the document that the file holds.

import { open, stat } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import type { Access } from './access.ts';
import { documentOf, hasLinesExtension, type UpstreamDocument } from './document.ts';
import { codeOf, UpstreamError, urlText } from './upstream-error.ts';

/** Opens a file. Throws {@link UpstreamError}, or the signal's reason. */
export async function openFile(url: URL, { limits, signal }: Access): Promise<UpstreamDocument> {
  signal.throwIfAborted();
  const name = urlText(url);
  const file = await openRegularFile(url, name);
  const raw = file.createReadStream({ highWaterMark: 64 * 1024 });
  return documentOf({
    url,
    raw,
    framed: true,
    limits,
    signal,
    lines: hasLinesExtension(url),
    header: () => null,
  });
}

async function openRegularFile(url: URL, name: string) {
  try {
    const path = fileURLToPath(url);
    // Asked before opening, because opening a named pipe waits for its writer.
    if ((await stat(path)).isFile()) return await open(path);
  } catch (error) {
    throw new UpstreamError(
      `${name} ${fileFailures[codeOf(error)] ?? `cannot be read (${codeOf(error)}). Check the path`}.`,
    );
  }
  throw new UpstreamError(`${name} is not a file. Name the file that holds the list.`);
}

const fileFailures: Record<string, string> = {
  ENOENT: 'does not exist. Check the path',
  ENOTDIR: 'does not exist. Check the path',
  EACCES: 'may not be read by this user. Check its permissions',
  EPERM: 'may not be read by this user. Check its permissions',
  ERR_INVALID_FILE_URL_HOST: 'names a host. A file on this machine is written file:///path',
};
