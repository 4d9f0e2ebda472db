// A program, the limit: what hapi with this service's authentication can do at most, since its answers are constant.
// In: Redis with the keys, and the file of the answers. Out: its address in a line of JSON, and answers until it is ended.

import type { ResponseToolkit } from '@hapi/hapi';
import { type ConstantAnswer, readConstants } from './constant-answers.ts';
import { keyedServer, readPeerArguments, tellAddress } from './keyed-server.ts';

const { redisUrl, keyPrefix, file } = readPeerArguments();
const server = await keyedServer({ redisUrl, keyPrefix, compression: false });
for (const constant of await readConstants(file)) {
  server.route({ method: 'GET', path: constant.path, handler: (_request, h) => respond(h, constant) });
}
await server.start();
tellAddress(server);

function respond(h: ResponseToolkit, { status, contentType, headers, body }: ConstantAnswer) {
  const response = status === 304 ? h.response().code(304) : h.response(body);
  if (contentType !== null) response.type(contentType);
  // hapi would add one, which the service's own answers do without.
  response.charset('');
  for (const [name, value] of headers) response.header(name, value);
  return response;
}
