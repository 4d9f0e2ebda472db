import { expect } from 'chai';
import { describeServer, parseServers } from '../../../shared/redis/server-url.ts';

const none = { hasTls: false, username: undefined, password: undefined };

describe('a REDIS_URL', () => {
  it('names one server', () => {
    expect(parseServers('redis://h')).to.deep.equal({ kind: 'one', url: 'redis://h' });
    expect(parseServers('rediss://u:p@[::1]:1/2')).to.deep.equal({
      kind: 'one',
      url: 'rediss://u:p@[::1]:1/2',
    });
  });

  it('names the socket of a server', () => {
    const usual = { kind: 'socket', username: undefined, password: undefined, db: 0 };
    for (const url of ['unix:/run/a%20b.sock', 'unix:///run/a%20b.sock', 'UNIX:/run/a b.sock'])
      expect(parseServers(url)).to.deep.equal({ ...usual, path: '/run/a b.sock' });
    expect(parseServers('unix://us%3Aer:p@s%2Fs:w@/r.sock?db=12')).to.deep.equal({
      ...{ kind: 'socket', path: '/r.sock', username: 'us:er', password: 'p@s/s:w', db: 12 },
    });
  });

  it('names Sentinels and their primary', () => {
    expect(parseServers('redis+sentinel://a:1,b.c,10.0.0.1:3/mymaster')).to.deep.equal({
      ...{ kind: 'sentinel', ...none, master: 'mymaster' },
      hosts: [
        { host: 'a', port: 1 },
        { host: 'b.c', port: 26_379 },
        { host: '10.0.0.1', port: 3 },
      ],
    });
  });

  it('names nodes of a Cluster, including IPv6 addresses in brackets', () => {
    const hosts = [
      { host: '::1', port: 7_000 },
      { host: 'fe80::2', port: 6_379 },
    ];
    expect(parseServers('redis+cluster://[::1]:7000,[fe80::2]')).to.deep.equal({
      kind: 'cluster',
      ...none,
      hosts,
    });
    expect(parseServers('redis+cluster://h/')).to.deep.equal({
      ...{ kind: 'cluster', ...none },
      hosts: [{ host: 'h', port: 6_379 }],
    });
  });

  it('may have percent-encoded credentials, and TLS', () => {
    const facts = { hasTls: true, username: 'us:er', password: 'p@s/s:w' };
    expect(parseServers('rediss+cluster://us%3Aer:p@s%2Fs:w@h')).to.deep.include(facts);
    expect(parseServers('REDISS+Sentinel://:secret@h/m')).to.deep.include({
      ...{ kind: 'sentinel', hasTls: true, username: undefined, password: 'secret' },
    });
  });

  const refused = [
    ...['redis+sentinel://h', 'redis+sentinel://h/', 'redis+sentinel://h/a%20b', 'redis+sentinel://h/a/b'],
    ...['redis+cluster://h/0', 'redis+cluster://', 'redis+cluster://h,', 'redis+cluster://h,,g'],
    ...['redis+cluster://h:0', 'redis+cluster://h:65536', 'redis+cluster://h:x', 'redis+cluster://h:6379:1'],
    ...['redis+cluster://::1', 'redis+cluster://[h]:1', 'redis+cluster://[::1', 'redis+cluster://h g'],
    ...['redis+cluster://h?x=1', 'redis+sentinel://h/m#x', 'redis+cluster://%zz@h', 'redis+cluster:h'],
    ...['unix:', 'unix:/', 'unix:r.sock', 'unix://h/r.sock', 'unix:/r.sock?db=x', 'unix:/r.sock#1'],
    ...['redis+proxy://h', 'redis://h,g', 'http://h', 'h:1', 'redis://h?'],
  ];
  for (const url of refused) {
    it(`rejects ${url}`, () => {
      expect(() => parseServers(url)).to.throw();
    });
  }

  it('is described without credentials and spaces', () => {
    expect(describeServer('redis://user:p@ss@h:1/2')).to.equal('h:1');
    expect(describeServer('rediss+sentinel://u:secret@h,[::1]:2/mymaster')).to.equal(
      'h:26379,[::1]:2/mymaster',
    );
    expect(describeServer('unix://u:p@ss@/run/a b.sock?db=1')).to.equal('/run/a%20b.sock');
    expect(describeServer('redis+cluster://u:p@ss@h,g:2')).to.equal('h:6379,g:2');
  });
});
