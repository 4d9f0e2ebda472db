// In: a number of records. Out: a service that has a list of so many and sends it as lines, as fast as they are taken.

import { createHash } from 'node:crypto';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { product } from '../support/records.ts';
import { startUpstreamServer, type UpstreamServer } from '../support/upstream-server.ts';

const linesAtOnce = 1_000;

/** Starts it; whoever calls this calls `close`. */
export async function startLongList(length: number): Promise<UpstreamServer> {
  const digest = createHash('sha256');
  for (const lines of linesOf(length)) digest.update(lines);
  const fields = { 'medref-version': '1', 'medref-digest': `list=:${digest.digest('base64')}:` };
  return startUpstreamServer((response) => {
    response.writeHead(200, fields);
    pipeline(Readable.from(linesOf(length)), response).catch(() => response.destroy());
  });
}

function* linesOf(length: number): Generator<string> {
  for (let from = 1; from <= length; from += linesAtOnce) {
    const ids = Array.from({ length: Math.min(linesAtOnce, length + 1 - from) }, (_, n) => from + n);
    yield ids.map((id) => `${JSON.stringify(product(id))}\n`).join('');
  }
}
