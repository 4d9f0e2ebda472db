// A proxy as companies have one: it passes requests on, and tunnels to where it is asked to connect.

import { request as ask, createServer } from 'node:http';
import { type AddressInfo, connect, type Socket } from 'node:net';

/** A proxy, and what it was asked: `GET http://…` or `CONNECT host:port`. */
export interface HttpProxy {
  readonly url: string;
  readonly asked: readonly string[];
  close(): Promise<void>;
}

/** Starts it; whoever calls this calls `close`. @param credentials what it asks for, as `user:password`, if anything */
export async function startHttpProxy(credentials?: string): Promise<HttpProxy> {
  const asked: string[] = [];
  const sockets = new Set<Socket>();
  const wanted = credentials && `Basic ${Buffer.from(credentials).toString('base64')}`;
  const server = createServer(({ method, url = '', headers }, response) => {
    asked.push(`${method} ${url}`);
    if (wanted && headers['proxy-authorization'] !== wanted) return void response.writeHead(407).end();
    const { 'proxy-authorization': _, ...passed } = headers;
    ask(url, { headers: passed }, (answer) => {
      response.writeHead(answer.statusCode ?? 502, answer.headers);
      answer.pipe(response);
    }).end();
  });
  server.on('connection', (socket) => sockets.add(socket));
  server.on('connect', ({ url = '', headers }, client: Socket) => {
    asked.push(`CONNECT ${url}`);
    if (wanted && headers['proxy-authorization'] !== wanted)
      return void client.end('HTTP/1.1 407 Who are you\r\n\r\n');
    const { hostname, port } = new URL(`tunnel://${url}`);
    const target = connect(Number(port), hostname, () => {
      client.write('HTTP/1.1 200 OK\r\n\r\n');
      client.pipe(target).pipe(client);
    });
    for (const it of [client, target]) it.on('error', () => target.destroy());
    sockets.add(target);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  return {
    url: `http://${credentials ? `${credentials}@` : ''}127.0.0.1:${port}`,
    asked,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        for (const socket of sockets) socket.destroy();
      }),
  };
}
