// A server that stops while clients hold connections: which request is answered, and what is said of its connection.

import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { expect } from 'chai';
import { startApi, type TestApi } from '../../support/api.ts';
import { useRedis } from '../../support/redis-server.ts';

/** Long enough for a request to come, and short enough to be waited for. */
const quietMs = 1_500;

const asked = 'GET /health/live HTTP/1.1\r\nHost: a\r\n\r\n';

describe('a server that stops', () => {
  const redis = useRedis();
  let api: TestApi;
  beforeEach(async () => {
    api = await startApi({ redisUrl: redis().url, quietMs });
  });

  async function open(): Promise<Client> {
    const socket = connect(api.port, '127.0.0.1');
    const client: Client = { socket, text: '', ended: once(socket, 'close') };
    socket.on('data', (chunk) => {
      client.text += chunk;
    });
    await once(socket, 'connect');
    return client;
  }

  async function answerTo(client: Client, bytes = asked): Promise<string> {
    client.text = '';
    client.socket.write(bytes);
    while (!client.text.endsWith('}')) await once(client.socket, 'data');
    return client.text;
  }

  it('answers who asks again on a connection that was idle, and tells that it ends with that answer', async () => {
    const [idle, fresh] = [await open(), await open()];
    expect(await answerTo(idle))
      .to.match(/^HTTP\/1.1 200 /)
      .and.to.match(/^connection: keep-alive/im);
    const from = performance.now();
    const stopped = api.stop();
    await sleep(50);
    for (const client of [idle, fresh]) {
      expect(await answerTo(client))
        .to.match(/^HTTP\/1.1 200 /)
        .and.to.match(/^connection: close/im);
      await client.ended;
    }
    await stopped;
    expect(performance.now() - from, 'it waits for nobody').to.be.below(quietMs);
  });

  it('tells so who asks whether to go on with a body, too', async () => {
    const idle = await open();
    const stopped = api.stop();
    await sleep(50);
    const expecting = asked.replace('\r\n\r\n', '\r\nExpect: 100-continue\r\n\r\n');
    expect(await answerTo(idle, expecting))
      .to.match(/^HTTP\/1.1 200 /m)
      .and.to.match(/^connection: close/im);
    await stopped;
  });

  it('lets go of who asks nothing, and takes no connection meanwhile', async () => {
    const idle = await open();
    const from = performance.now();
    const stopped = api.stop();
    await sleep(20);
    const late = connect(api.port, '127.0.0.1');
    const [error] = (await once(late, 'error')) as [NodeJS.ErrnoException];
    expect(error.code).to.equal('ECONNREFUSED');
    await idle.ended;
    expect(performance.now() - from).to.be.above(quietMs - 20);
    await stopped;
  });

  it('tells of the answer under way that it is the last one', async () => {
    const client = await open();
    redis().pause(); // It is asked for the key.
    const answer = answerTo(
      client,
      `GET /products HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer ${api.key}\r\n\r\n`,
    );
    await sleep(30);
    const stopped = api.stop();
    await sleep(30);
    redis().resume();
    expect(await answer).to.match(/^connection: close/im);
    await stopped;
  });
});

interface Client {
  readonly socket: Socket;
  text: string;
  readonly ended: Promise<unknown>;
}
