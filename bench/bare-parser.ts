// A program: stream-json alone, values packed into tokens and not streamed, records put together, nothing done with them.
// In: `stream` (as its documentation shows it) or `loop` (its functions without streams), and the file of a JSON array.
// Out: how many records it had and how long that took, as JSON.

import { createReadStream } from 'node:fs';
import { jsonParser } from 'stream-json/core/parser.js';
import { streamArray as assembler } from 'stream-json/core/streamers/stream-array.js';
import { streamArray } from 'stream-json/streamers/stream-array.js';

const options = { streamValues: false };
const [way, file = ''] = process.argv.slice(2);

const startedAt = performance.now();
const records = await (way === 'loop' ? countInLoop() : countInStream());
process.stdout.write(`${JSON.stringify({ records, durationMs: performance.now() - startedAt })}\n`);

async function countInStream(): Promise<number> {
  let count = 0;
  const values = createReadStream(file).pipe(streamArray.withParserAsStream(options));
  values.on('data', () => count++);
  await new Promise((resolve, reject) => values.on('end', resolve).on('error', reject));
  return count;
}

async function countInLoop(): Promise<number> {
  let count = 0;
  const parse = jsonParser(options);
  const assemble = assembler();
  for await (const text of createReadStream(file, { encoding: 'utf8' })) {
    const tokens = parse(text);
    if (typeof tokens === 'symbol') continue;
    for (const token of tokens.values) if (typeof assemble(token) !== 'symbol') count++;
  }
  return count;
}
