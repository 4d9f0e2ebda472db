// A program, the floor below any framework: node:http that sends one constant answer to whatever it is asked.
// In: the file of the answer. Out: its address in a line of JSON, and answers until it is ended.

import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { readConstants } from './constant-answers.ts';

const [constant] = await readConstants(process.argv[2] ?? '');
if (constant === undefined) throw new Error('There is no answer to send.');
const { status, headers, contentType, body } = constant;
const fields = {
  ...Object.fromEntries(headers),
  'content-type': contentType ?? '',
  'content-length': body.length,
};

const server = createServer((_request, response) => {
  response.writeHead(status, fields);
  response.end(body);
});
server.listen(0, '127.0.0.1', () => {
  const { port } = server.address() as AddressInfo;
  process.stdout.write(`${JSON.stringify({ address: `http://127.0.0.1:${port}` })}\n`);
});
