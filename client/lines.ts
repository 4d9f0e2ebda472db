// A whole list as lines: read on where it was cut, and held against its digest before the last line is given.

import type { ReadVersion } from './answers.ts';
import type { Connection, Patience } from './connection.ts';
import { base64 } from './digests.ts';
import { broken, MedrefError, mismatch, notMedref, notTheVersion } from './medref-error.ts';
import { startSha256 } from './sha256.ts';

const lineFeed = 10;
/** How long a line may be: a record has 256 KiB at most. */
const longestLine = 1024 * 1024;

/**
 * Reads the lines of a list, in bounded memory.
 * @param read the version that is asked for, if any; says afterwards which one it is
 * @throws MedrefError named `DigestMismatch` in the place of the last line where the lines are not the version
 */
export async function* readLines(
  connection: Connection,
  collection: string,
  { read, ...patience }: Patience & { readonly read: ReadVersion },
): AsyncGenerator<string> {
  const digest = startSha256();
  const decoder = new TextDecoder('utf-8', { ignoreBOM: true });
  /** How many lines are in the digest, and will be given. */
  let count = 0;
  let last: string | undefined;
  for (let tries = 1; ; tries += 1) {
    try {
      const asked = { read, skip: count, ...patience };
      for await (const whole of wholeLines(connection, collection, asked)) {
        digest.update(whole);
        const lines = decoder.decode(whole).split('\n');
        lines.pop();
        count += lines.length;
        tries = 0; // What goes on is not given up.
        for (const line of lines) {
          if (last !== undefined) yield last;
          last = line;
        }
      }
      break;
    } catch (error) {
      await connection.recover(error, tries, patience);
    }
  }
  if (base64(digest.digest()) !== read.digest?.list) throw notTheVersion(collection, read.version);
  if (last !== undefined) yield last;
}

/** The record of a line. @throws MedrefError where the line was spoilt on its way */
export function recordIn<Item>(line: string): Item {
  try {
    return JSON.parse(line);
  } catch {
    throw new MedrefError(200, mismatch, 'A line came that is no record: it was spoilt on its way.');
  }
}

interface Wanted extends Patience {
  readonly read: ReadVersion;
  /** How many lines came before. */
  readonly skip: number;
}

/** One try: bytes that end at the ends of lines. */
async function* wholeLines(
  connection: Connection,
  collection: string,
  { read, skip, ...patience }: Wanted,
): AsyncGenerator<Uint8Array> {
  const accept = 'application/x-ndjson';
  const query = { version: read.version };
  const { exchange, url, version, digest } = await connection.open(collection, {
    accept,
    query,
    ...patience,
  });
  try {
    if (!digest) throw notMedref(200, url, 'came without Medref-Digest, by which it is proven');
    read.version = version;
    read.digest = digest;
    let rest = new Uint8Array(0);
    for await (const chunk of exchange.chunks()) {
      const bytes = joined(rest, chunk);
      const end = bytes.lastIndexOf(lineFeed) + 1;
      rest = bytes.subarray(end);
      if (rest.length > longestLine) throw notMedref(200, url, 'has a line that no record can have');
      let from = 0;
      for (; skip > 0 && from < end; skip -= 1) from = bytes.indexOf(lineFeed, from) + 1;
      if (from < end) yield bytes.subarray(from, end);
    }
    if (rest.length > 0) throw broken(url, 'its last line has no end');
  } finally {
    exchange.end();
  }
}

function joined(rest: Uint8Array<ArrayBuffer>, chunk: Uint8Array): Uint8Array<ArrayBuffer> {
  const bytes = new Uint8Array(rest.length + chunk.length);
  bytes.set(rest);
  bytes.set(chunk, rest.length);
  return bytes;
}
