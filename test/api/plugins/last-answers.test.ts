import { Duplex } from 'node:stream';
import { setTimeout as sleep } from 'node:timers/promises';
import { server as hapiServer } from '@hapi/hapi';
import { expect } from 'chai';
import { lastAnswers } from '../../../api/plugins/last-answers.ts';

/** A connection whose end takes its time, as that of one whose client takes nothing. */
class LingeringConnection extends Duplex {
  sent = '';

  override _read(): void {}

  override _write(chunk: Buffer, _encoding: BufferEncoding, done: () => void): void {
    this.sent += chunk.toString('latin1');
    done();
  }

  override _final(): void {}

  override _destroy(_error: Error | null, done: () => void): void {
    setTimeout(done, 50);
  }
}

describe('the last answer of a connection', () => {
  it('is not followed by any other, whatever comes while the connection ends, and the process goes on', async () => {
    const asked: string[] = [];
    let goOn: (said: string) => void = () => undefined;
    const server = hapiServer();
    await server.register({ plugin: lastAnswers });
    const handler = ({ path }: { path: string }) => {
      asked.push(path);
      return path === '/first' ? new Promise<string>((resolve) => (goOn = resolve)) : path;
    };
    server.route({ method: 'GET', path: '/{name}', handler });
    await server.initialize();
    const connection = new LingeringConnection();
    server.listener.emit('connection', connection);
    const send = (path: string, fields = '') =>
      connection.push(`GET ${path} HTTP/1.1\r\nHost: a\r\n${fields}\r\n`);
    send('/first', 'Upgrade: x\r\nConnection: upgrade\r\n');
    await sleep(10);
    send('/second');
    await sleep(10);
    goOn('one');
    while (!connection.writableEnded) await sleep(1);
    send('/third');
    connection.destroy();
    await sleep(100);
    expect(connection.sent).to.match(/^HTTP\/1\.1 200 OK\r\n.*connection: close\r\n.*one$/is);
    expect(asked).to.deep.equal(['/first', '/second']);
    await server.stop();
  });
});
