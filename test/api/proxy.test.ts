// Tests how the API finds the client behind proxies: from headers alone, and in the links, logs and limits of an API.

import { BlockList } from 'node:net';
import { expect } from 'chai';
import type { CompletedRequest } from '../../api/http.ts';
import { networkOf, senderOf } from '../../api/proxy.ts';
import { products as productCollection } from '../../shared/collections/products.ts';
import { type ApiOptions, startApi, type TestApi } from '../support/api.ts';
import { importRecords } from '../support/importing.ts';
import { products } from '../support/records.ts';
import { useRedis } from '../support/redis-server.ts';
import { exchange, send } from '../support/wire.ts';

function trusting(...ranges: readonly (readonly [address: string, bits: number])[]): BlockList {
  const list = new BlockList();
  for (const [address, bits] of ranges)
    list.addSubnet(address, bits, address.includes(':') ? 'ipv6' : 'ipv4');
  return list;
}

const proxies = trusting(['10.0.0.0', 8], ['fd00::', 8]);
const own = '10.0.0.1';

/** The sent headers, the address of the peer, and the expected result as `address scheme host`. */
const cases: readonly (readonly [sent: Readonly<Record<string, string>>, peer: string, found: string])[] = [
  [{}, own, `${own} http -`],
  [{ 'x-forwarded-for': '192.0.2.1' }, own, '192.0.2.1 http -'],
  // The peer is not trusted, or its connection is closed.
  [{ 'x-forwarded-for': '192.0.2.1', 'x-forwarded-proto': 'https' }, '192.0.2.9', '192.0.2.9 http -'],
  [{ forwarded: 'for=192.0.2.1;proto=https;host=a.example' }, '11.0.0.1', '11.0.0.1 http -'],
  [{ 'x-forwarded-for': '192.0.2.1' }, '', ' http -'],
  // The rightmost address that is not a trusted proxy counts. The client may have invented all addresses before it.
  [{ 'x-forwarded-for': '127.0.0.1, 192.0.2.1, 10.9.9.9' }, own, '192.0.2.1 http -'],
  [{ 'x-forwarded-for': '192.0.2.1,10.9.9.9 , 10.0.0.7' }, own, '192.0.2.1 http -'],
  [{ 'x-forwarded-for': '10.0.0.9, 10.0.0.7' }, own, '10.0.0.9 http -'],
  // Forms of addresses.
  [{ 'x-forwarded-for': '192.0.2.1:4711' }, own, '192.0.2.1 http -'],
  [{ 'x-forwarded-for': '2001:db8::1' }, own, '2001:db8::1 http -'],
  [{ 'x-forwarded-for': '[2001:db8::1]:4711, [fd00::2]' }, own, '2001:db8::1 http -'],
  [{ 'x-forwarded-for': '192.0.2.1, ::ffff:10.0.0.5' }, '::ffff:10.0.0.1', '192.0.2.1 http -'],
  [{ 'x-forwarded-for': '192.0.2.1' }, 'fd00::1%eth0', '192.0.2.1 http -'],
  // A trusted proxy that does not name its client counts as the client itself.
  ...[
    'unknown',
    '_hidden',
    '',
    'a.example',
    '300.1.1.1',
    '192.0.2.1:x',
    '[192.0.2.1]',
    '2001:db8::1%eth0',
  ].map((it) => [{ 'x-forwarded-for': `192.0.2.1, ${it}, 10.0.0.7` }, own, '10.0.0.7 http -'] as const),
  [{ 'x-forwarded-for': 'unknown' }, own, `${own} http -`],
  // Schemes and hosts.
  [
    { 'x-forwarded-proto': 'https', 'x-forwarded-host': 'a.example:8443' },
    own,
    `${own} https a.example:8443`,
  ],
  [{ 'x-forwarded-host': 'b.example' }, own, `${own} http b.example`],
  [{ 'x-forwarded-for': '192.0.2.1', 'x-forwarded-proto': 'HTTPS' }, own, '192.0.2.1 https -'],
  [{ 'x-forwarded-proto': 'ftp', 'x-forwarded-host': 'a b' }, own, `${own} http -`],
  [{ 'x-forwarded-proto': 'https, http' }, own, `${own} http -`],
  // If several proxies send one value, the nearest proxy has set it. If each proxy sends a value, each has set its own.
  [{ 'x-forwarded-for': '192.0.2.1, 10.0.0.7', 'x-forwarded-proto': 'https' }, own, '192.0.2.1 https -'],
  [
    { 'x-forwarded-for': '192.0.2.1, 10.0.0.7', 'x-forwarded-proto': 'https, http' },
    own,
    '192.0.2.1 https -',
  ],
  [{ 'x-forwarded-for': '9.9.9.9, 192.0.2.1', 'x-forwarded-proto': 'https, http' }, own, '192.0.2.1 http -'],
  [{ 'x-forwarded-for': '1.1.1.1, 2.2.2.2, 10.0.0.7', 'x-forwarded-host': 'a, b' }, own, '2.2.2.2 http b'],
  // RFC 7239.
  [{ forwarded: 'for=192.0.2.1;proto=https;host=a.example' }, own, '192.0.2.1 https a.example'],
  [{ forwarded: 'For="[2001:db8::1]:4711";by=_x;Proto=http' }, own, '2001:db8::1 http -'],
  [{ forwarded: 'for=192.0.2.1;proto=https, for=10.0.0.7;proto=http' }, own, '192.0.2.1 https -'],
  [{ forwarded: 'for=192.0.2.1 , for=10.0.0.7; proto=https' }, own, '192.0.2.1 https -'],
  [{ forwarded: 'for=9.9.9.9;host=evil, for=192.0.2.1' }, own, '192.0.2.1 http -'],
  [{ forwarded: 'for="192.0.2.1, 10.0.0.7"' }, own, `${own} http -`],
  [{ forwarded: 'for="192.0.2\\.1"' }, own, '192.0.2.1 http -'],
  [{ forwarded: 'for=192.0.2.1:4711;;' }, own, '192.0.2.1 http -'],
  [{ forwarded: 'proto=https, for=_hidden;proto=https' }, own, `${own} https -`],
  [{ forwarded: 'for=unknown' }, own, `${own} http -`],
  [{ forwarded: '' }, own, `${own} http -`],
  // A malformed header is ignored completely.
  ...[
    'for="192.0.2.1',
    'for',
    'for=',
    'for=192.0.2.1 x',
    'for=192.0.2.1;FOR=9.9.9.9',
    'f r=1, for=192.0.2.1',
  ].map((it) => [{ forwarded: `proto=https, ${it}` }, own, `${own} http -`] as const),
  // Both kinds of headers: one of them comes unchanged from the client, and the API cannot know which.
  [{ forwarded: 'for=192.0.2.1;proto=https', 'x-forwarded-for': '192.0.2.1' }, own, `${own} http -`],
  [{ forwarded: 'for=192.0.2.1', 'x-forwarded-host': 'a.example' }, own, `${own} http -`],
];

describe('the address of a client', () => {
  for (const [sent, peer, found] of cases) {
    const what = Object.entries(sent).map(([name, value]) => `${name}: ${value}`);
    it(`is ${found} if ${peer || 'an unknown peer'} sends ${what.join(' and ') || 'no header'}`, () => {
      const { address, scheme, host = '-' } = senderOf(sent, peer, proxies);
      expect(`${address} ${scheme} ${host}`).to.equal(found);
    });
  }
});

describe('the network of a client', () => {
  it('is an IPv4 address, or the first 64 bits of an IPv6 address', () => {
    const networks: Readonly<Record<string, string>> = {
      '10.0.0.9': '10.0.0.9',
      '::ffff:10.0.0.9': '10.0.0.9',
      '2001:db8:1:2:3:4:5:6': '2001:db8:1:2::/64',
      '2001:0DB8:0001:0002::7': '2001:db8:1:2::/64',
      '2001:db8::1': '2001:db8:0:0::/64',
      '::1': '0:0:0:0::/64',
      '': '',
    };
    for (const [address, network] of Object.entries(networks))
      expect(networkOf(address), address).to.equal(network);
  });
});

describe('an API behind a trusted proxy', () => {
  const redis = useRedis();
  const answered: CompletedRequest[] = [];
  let api: TestApi;
  let untrusting: TestApi;

  const start = (options: ApiOptions) => startApi({ redisUrl: redis().url, ...options });
  before(async () => {
    await importRecords(products(3), productCollection, { redisUrl: redis().url });
    const onResponse = ({ address, target, status }: CompletedRequest) =>
      void answered.push({ address, target, status } as CompletedRequest);
    api = await start({ trustedProxies: trusting(['127.0.0.0', 8]), onResponse });
    untrusting = await start({ trustedProxies: trusting(['10.0.0.0', 8]) });
  });
  after(async () => {
    await api?.stop();
    await untrusting?.stop();
  });

  const selfOf = async (from: TestApi, headers: Record<string, string>) => {
    const { body } = await send(from, '/products', { headers: { host: 'inner.example', ...headers } });
    return JSON.parse(body.toString())._links.self.href.split('/products')[0];
  };

  it("links to the client's scheme and host, or to the Host if the proxy reports none", async () => {
    const reported = { 'x-forwarded-proto': 'https', 'x-forwarded-host': 'a.example' };
    expect(await selfOf(api, reported)).to.equal('https://a.example');
    expect(await selfOf(api, { forwarded: 'proto=https' })).to.equal('https://inner.example');
    expect(await selfOf(api, {})).to.equal('http://inner.example');
    expect(await selfOf(untrusting, reported)).to.equal('http://inner.example');
  });

  it("logs the client's address, also from repeated headers", async () => {
    const head = `GET /health/live HTTP/1.1\r\nHost: a\r\nConnection: close\r\n`;
    const lines = 'X-Forwarded-For: 192.0.2.1\r\nX-Forwarded-For: 127.0.0.9\r\n';
    await exchange(api, `${head}${lines}\r\n`);
    expect(answered.at(-1)?.address).to.equal('192.0.2.1');
    await send(api, '/nothing');
    expect(answered.at(-1)?.address).to.equal('127.0.0.1');
  });

  it('requires TLS from then on only for clients that used it', async () => {
    const by = async (from: TestApi, proto: string, path: string) =>
      (await send(from, path, { headers: { 'x-forwarded-proto': proto } })).headers[
        'strict-transport-security'
      ];
    for (const path of ['/products', '/health/live', '/nothing']) {
      expect(await by(api, 'https', path), path).to.equal('max-age=31536000');
      expect(await by(api, 'http', path), path).to.equal(undefined);
      expect(await by(untrusting, 'https', path), path).to.equal(undefined);
    }
  });
});
