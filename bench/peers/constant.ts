// A program, the baseline: hapi with a lookup of the key and a constant response. Prints its address as JSON.

import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import type { AddressInfo } from 'node:net';
import { server as hapiServer } from '@hapi/hapi';

/** A response on the wire. */
export interface Constant {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  /** In base64. */
  readonly body: string;
}

const [file = '', ...known] = process.argv.slice(2);
const constants = JSON.parse(readFileSync(file, 'utf8')) as Record<string, Constant>;
const digestOf = (text: string) => createHash('sha256').update(text).digest('hex');
const keys = new Map(known.map((key) => [digestOf(key), { client: 'bench' }]));

const server = hapiServer({
  host: '127.0.0.1',
  port: 0,
  compression: false,
  debug: false,
  routes: { response: { ranges: false }, state: { parse: false, failAction: 'ignore' } },
});
server.auth.scheme('key', () => ({
  authenticate(request, h) {
    const app = keys.get(digestOf(String(request.headers['authorization']).slice('Bearer '.length)));
    if (!app) throw new Error('The key is unknown.');
    return h.authenticated({ credentials: { app } });
  },
}));
server.auth.strategy('key', 'key');
server.auth.default('key');
for (const [name, { status, headers, body }] of Object.entries(constants)) {
  const bytes = Buffer.from(body, 'base64');
  for (const path of [`/${name}`, `/${name}/{id}`])
    server.route({
      method: 'GET',
      path,
      handler: (_request, h) => {
        const response = status === 304 ? h.response().code(304) : h.response(bytes);
        for (const [field, value] of Object.entries(headers)) response.header(field, value);
        return response.charset('') ?? response;
      },
    });
}
await server.start();
const { port } = server.listener.address() as AddressInfo;
process.stdout.write(`${JSON.stringify({ address: `http://127.0.0.1:${port}` })}\n`);
