// Tests who may read the dashboard, with real requests to a listener with a password and to a listener without one.

import { once } from 'node:events';
import { type IncomingMessage, request } from 'node:http';
import { networkInterfaces } from 'node:os';
import { expect } from 'chai';
import { useDashboard } from '../../support/dashboard.ts';
import { useRedis } from '../../support/redis-server.ts';
import { exchange, sendWithoutKey } from '../../support/wire.ts';

const token = 'pass:word';
const paths = ['/', '/style.css', '/keys', '/nothing', '/metrics/'];

describe('the admin listener', () => {
  const redis = useRedis();

  describe('with ADMIN_TOKEN', () => {
    const wrong: string[] = [];
    const dashboard = useDashboard(redis, { token, onWrongPassword: (it) => void wrong.push(it) });
    const ask = (path: string, headers: Record<string, string> = {}, method = 'GET') =>
      sendWithoutKey(dashboard(), path, { headers, method });
    const basic = (credentials: string, scheme = 'Basic') => ({
      authorization: `${scheme} ${Buffer.from(credentials).toString('base64')}`,
    });

    it('requires it as a password on every path except /metrics, also for unknown pages', async () => {
      for (const path of paths) {
        const { status, headers, body } = await ask(path);
        expect(status, path).to.equal(401);
        expect(headers['www-authenticate']).to.equal('Basic realm="medref", charset="UTF-8"');
        expect(headers['content-type']).to.include('text/html');
        expect(body.toString()).to.include('ADMIN_TOKEN').and.not.include(token);
      }
      expect((await ask('/', {}, 'POST')).status).to.equal(401);
      const metrics = await ask('/metrics');
      expect(metrics.status).to.equal(200);
      expect(metrics.headers['content-type']).to.include('text/plain');
      expect(metrics.headers, 'headers of pages').not.to.have.property('content-security-policy');
    });

    it('accepts it with any user name and any case of the scheme', async () => {
      for (const user of ['', 'admin', 'ünal'])
        expect((await ask('/keys', basic(`${user}:${token}`))).status, user).to.equal(200);
      expect((await ask('/keys', basic(`x:${token}`, 'bASIC'))).status).to.equal(200);
      expect((await ask('/keys', { ...basic(`x:${token}`), host: 'medref.example' })).status).to.equal(200);
    });

    it('rejects everything else', async () => {
      const others = [
        `x:${token} `,
        `x:${token.slice(0, -1)}`,
        'x:',
        token,
        `${token}:`,
        `x:word`,
        'x:\0',
        '',
      ];
      // Each request has its own address, so that no address has sent too many.
      let addresses = 2;
      const statusOf = async (authorization: string): Promise<number | undefined> => {
        const localAddress = `127.0.0.${addresses++}`;
        const asked = request(`${dashboard().origin}/keys`, {
          headers: { authorization },
          localAddress,
        }).end();
        const [response] = (await once(asked, 'response')) as [IncomingMessage];
        response.resume();
        return response.statusCode;
      };
      for (const credentials of others)
        expect(await statusOf(basic(credentials).authorization), credentials).to.equal(401);
      for (const authorization of [`Bearer ${token}`, 'Basic', 'Basic ?', token, `Basic x:${token}`])
        expect(await statusOf(authorization), authorization).to.equal(401);
    });

    it('rejects further passwords after ten wrong ones from an address, and logs each without it', async () => {
      const asBefore = wrong.length;
      const wrongs = Array.from({ length: 10 }, () => ask('/', basic('x:secret')));
      expect((await Promise.all(wrongs)).map(({ status }) => status)).to.deep.equal(Array(10).fill(401));
      const right = await ask('/', basic(`x:${token}`));
      expect([right.status, right.headers['retry-after']]).to.deep.equal([429, '6']);
      expect(wrong.slice(asBefore)).to.deep.equal(
        Array(10).fill('Wrong password for the dashboard from 127.0.0.1.'),
      );
    });
  });

  describe('without ADMIN_TOKEN', () => {
    const dashboard = useDashboard(redis, { host: '0.0.0.0' });
    const ask = (path: string, headers: Record<string, string>) =>
      sendWithoutKey(dashboard(), path, { headers });

    it('accepts a Host that names loopback, with or without a port', async () => {
      const hosts = [
        'localhost',
        'LOCALHOST:3001',
        '127.0.0.1',
        '127.8.9.10:80',
        '[::1]',
        '[::1]:3001',
        '[0:0:0:0:0:0:0:1]',
      ];
      for (const host of hosts) expect((await ask('/keys', { host })).status, host).to.equal(200);
    });

    it("rejects any other Host, since another site's name may lead here, and says what to do", async () => {
      const hosts = [
        'medref.example',
        'localhost.example',
        'xlocalhost',
        'localhost:',
        '127.0.0.1.example',
        '128.0.0.1',
      ];
      for (const host of [...hosts, '0.0.0.0', '[::2]', '127.1', '2130706433', '127.0.0.1@x', 'a b'])
        for (const path of paths) {
          const { status, body } = await ask(path, { host });
          expect(status, `${host} ${path}`).to.equal(403);
          expect(body.toString()).to.include('set ADMIN_TOKEN');
        }
      const [unnamed] = await exchange(dashboard(), 'GET /keys HTTP/1.0\r\n\r\n');
      expect(unnamed?.status).to.equal(403);
      expect((await ask('/metrics', { host: 'medref.example' })).status).to.equal(200);
    });

    it('rejects every client from another address than loopback, whatever the Host', async function () {
      const other = Object.values(networkInterfaces())
        .flat()
        .find((it) => it?.family === 'IPv4' && !it.internal)?.address;
      if (other === undefined) return this.skip(); // A machine without a network has no other address.
      const statusOf = (path: string) =>
        new Promise((resolve, reject) => {
          const { port } = dashboard();
          const asked = request({ host: other, port, path, headers: { host: 'localhost' } }, (response) => {
            response.resume();
            resolve(response.statusCode);
          });
          asked.on('error', reject).end();
        });
      expect(await statusOf('/keys')).to.equal(403);
      expect(await statusOf('/metrics')).to.equal(200);
    });
  });
});
