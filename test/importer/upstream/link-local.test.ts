// Tests that an upstream cannot lead an import to link-local addresses, at which machines give data about themselves.

import type { LookupFunction } from 'node:net';
import { expect } from 'chai';
import { isLinkLocal } from '../../../importer/upstream/access.ts';
import { createUpstream, type UpstreamOptions } from '../../../importer/upstream/upstream.ts';
import { refusing, sending, upstreamServers } from '../../support/upstream-server.ts';

describe('a link-local address', () => {
  const start = upstreamServers();

  async function outcomeOf(url: URL, options: UpstreamOptions = {}): Promise<string> {
    const upstream = createUpstream({ ...options, limits: { attempts: 1, connectMs: 50 } });
    try {
      const document = await upstream.open(url);
      return 'notModified' in document ? 'not modified' : 'read';
    } catch (error) {
      return (error as Error).message;
    } finally {
      await upstream.close();
    }
  }
  const refused = / has a link-local address, at which clouds serve secrets of a machine\. /;

  it('is one of these, and no other', () => {
    for (const host of [
      ...['169.254.169.254', '169.254.0.0', '[fe80::1]', '[febf::1]', '[::ffff:a9fe:a9fe]', 'fe80::1%eth0'],
      ...['100.100.100.200', '[fd00:ec2::254]', 'metadata.google.internal', 'METADATA.goog.'],
    ])
      expect(isLinkLocal(host), host).to.equal(true);
    for (const host of [
      '169.253.1.1',
      '170.254.1.1',
      '[fec0::1]',
      '[::1]',
      '10.0.0.1',
      'metadata.example',
      '',
    ])
      expect(isLinkLocal(host), host).to.equal(false);
  });

  for (const target of [
    ...['http://169.254.169.254/latest', 'http://2852039166/', 'http://0xa9.0xfe.1/', 'https://[fe80::1]/'],
    ...['http://[::ffff:169.254.169.254]/', 'http://metadata.google.internal/computeMetadata/v1/'],
  ]) {
    it(`is not requested if upstream redirects to ${target}`, async () => {
      const server = await start(refusing(302, { location: target }));
      expect(await outcomeOf(server.url())).to.match(refused);
    });
  }

  it('is requested if the operator configured it: only the network can refuse', async () => {
    expect(await outcomeOf(new URL('http://169.254.255.1:9/list'))).not.to.match(refused);
  });

  /** Looks names up as a foreign DNS server may resolve them: the addresses follow one after the other. */
  const answering = (...responses: readonly string[]): LookupFunction => {
    let nth = 0;
    return (_host, { all }, callback) => {
      const address = responses[Math.min(nth++, responses.length - 1)] as string;
      const family = address.includes(':') ? 6 : 4;
      if (all) callback(null, [{ address, family }]);
      else callback(null, address, family);
    };
  };

  it('is not connected to if a name resolves to it, even the configured one', async () => {
    for (const address of ['169.254.169.254', 'fe80::1', 'fd00:ec2::254']) {
      const url = new URL('http://upstream.example:9/list');
      expect(await outcomeOf(url, { lookup: answering(address) }), address).to.match(refused);
    }
  });

  it('is not connected to if a name had another address a moment before', async () => {
    const server = await start((response, request, nth) =>
      nth === 1
        ? refusing(302, { location: '/again', connection: 'close' })(response, request, nth)
        : sending([])(response, request, nth),
    );
    const url = new URL(`http://upstream.example:${server.url().port}/list`);
    expect(await outcomeOf(url, { lookup: answering('127.0.0.1') })).to.equal('read');
    const again = await start(refusing(302, { location: '/again', connection: 'close' }));
    const rebound = new URL(`http://upstream.example:${again.url().port}/list`);
    const lookup = answering('127.0.0.1', '169.254.169.254');
    expect(await outcomeOf(rebound, { lookup })).to.match(refused);
    expect(again.requests).to.have.length(1);
  });

  it('is irrelevant for an unknown name', async () => {
    const lookup: LookupFunction = (_host, _options, callback) =>
      callback(Object.assign(new Error('no such name'), { code: 'ENOTFOUND' }), []);
    expect(await outcomeOf(new URL('http://upstream.example/'), { lookup })).to.include('unknown host name');
  });
});
