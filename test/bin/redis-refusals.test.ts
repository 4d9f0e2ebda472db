// Tests how every command reports a Redis that refuses it: with one sentence of medref, and with no line of a library.

import { expect } from 'chai';
import { connectForWriting, type Redis } from '../../shared/redis/connections.ts';
import { describeServer } from '../../shared/redis/server-url.ts';
import { beginMedref, medref, medrefProcess, startMedref } from '../support/medref.ts';
import { useRedis } from '../support/redis-server.ts';

describe('a refusal by Redis', function () {
  this.timeout(60_000);
  const server = useRedis();
  const guarded = useRedis({ users: false });
  const replica = useRedis({ users: false });
  let redis: Redis;
  before(async () => {
    redis = await connectForWriting(server().url);
    await redis.call(
      'ACL',
      'SETUSER',
      'weak',
      'on',
      '>weak',
      '~*',
      '&*',
      '-@all',
      '+ping',
      '+info',
      '+select',
    );
    await redis.call('ACL', 'SETUSER', 'nobody', 'on', '>nobody', '-@all');
    const guard = await connectForWriting(guarded().url);
    await guard.config('SET', 'requirepass', 'secret');
    guard.disconnect();
    const follower = await connectForWriting(replica().url);
    await follower.replicaof('127.0.0.1', 1);
    follower.disconnect();
  });
  after(() => redis.disconnect());

  const as = (user: string, url: string) => url.replace('redis://', `redis://${user}@`);
  const place = String.raw`^Redis at 127\.0\.0\.1:\d+ cannot be used: `;
  const reading = ['status', 'versions products', 'diff products', 'rejects products', 'keys list'];
  const writing = [
    'import companies',
    'rollback products',
    'resume products',
    'keys create --client a',
    'keys revoke a',
  ];
  const refusing: [what: string, url: () => string, commands: readonly string[], line: RegExp][] = [
    [
      'wants a password',
      () => guarded().url,
      [...reading, ...writing, 'schedule'],
      new RegExp(`${place}Redis requires a password\\. Add it to REDIS_URL\\.$`),
    ],
    [
      'does not take the password',
      () => as('a:bad', guarded().url),
      [...reading, ...writing, 'schedule'],
      new RegExp(`${place}Redis does not accept the user or password of REDIS_URL\\.$`),
    ],
    [
      'has no such database',
      () => `${server().url}/99`,
      [...reading, ...writing, 'schedule'],
      new RegExp(
        `${place}Redis does not have the database of REDIS_URL\\. Choose a different number, such as 0\\.$`,
      ),
    ],
    [
      'has no database of such a number',
      () => `${server().url}/99999999999`,
      ['status'],
      new RegExp(
        `${place}Redis does not have the database of REDIS_URL\\. Choose a different number, such as 0\\.$`,
      ),
    ],
    [
      'lets the user do too little',
      () => as('weak:weak', server().url),
      [...reading, ...writing, 'schedule'],
      /^The Redis user lacks a right that medref needs\. docs\/REDIS\.md lists the rights\.$|^Redis user "weak" may not read and change API keys\. /,
    ],
    [
      'is a replica',
      () => replica().url,
      ['import companies', 'rollback products', 'resume products', 'keys create --client a'],
      /^This Redis is a read-only replica\. Set REDIS_URL to its primary\.$/,
    ],
  ];
  for (const [what, url, commands, line] of refusing) {
    it(`is one sentence in every command that needs Redis, if it ${what}`, async () => {
      const settings = { COMPANIES_URL: 'file:///none.json', LOG_LEVEL: 'silent' };
      for (const command of commands) {
        const result = await medref(command.split(' '), { ...settings, REDIS_URL: url() });
        const said = command.startsWith('import')
          ? result.stdout
              .replace(/^(?:warning: .*\n(?: {2}.*\n)*)*companies {2}FAILED .*\n/, '')
              .replace(/\s+/g, ' ')
          : result.stderr;
        expect(said.trim(), command).to.match(line);
        expect(said.trim().split('\n'), command).to.have.length(1);
        expect(result.code, command).to.equal(1);
      }
    });
  }

  it('lets no library write to stderr', async () => {
    const status = (url: string) => medrefProcess(['status'], { REDIS_URL: url });
    const unneeded = await status(as(':unneeded', server().url));
    expect([unneeded.code, unneeded.stderr], 'a password that Redis does not require').to.deep.equal([0, '']);
    const mute = await status(as('nobody:nobody', server().url));
    expect(mute.stderr).to.match(/^The Redis user lacks a right that medref needs\. .*\n$/);
    const settings = { REDIS_URL: as('nobody:nobody', server().url), API_PORT: '0', LOG_LEVEL: 'info' };
    const api = startMedref(['serve', '--json'], settings);
    await api.line(/"address"/);
    api.process.kill('SIGTERM');
    for (const line of (await api.ended).stderr.trim().split('\n')) {
      expect(() => JSON.parse(line), line).not.to.throw();
      expect(line).not.to.match(/ioredis|\[WARN\]/);
    }
  });

  it('shows no part of a password, even with an @', () => {
    expect(describeServer('redis://user:p@ss@secret@h:1/2')).to.equal('h:1');
  });

  it('ends a schedule that cannot start', async () => {
    const settings = { REDIS_URL: as('weak:weak', server().url), COMPANIES_URL: 'file:///none.json' };
    const { code } = await medrefProcess(['schedule'], settings);
    expect(code).to.equal(1);
  });

  it('is logged by the API in plain words', async () => {
    const api = beginMedref(['serve', '--json'], { REDIS_URL: guarded().url, API_PORT: '0' });
    await api.line(/"address"/);
    const [line = ''] = (await api.stop()).stderr.split('\n');
    expect(JSON.parse(line)).to.deep.include({
      msg: 'Redis is unavailable.',
      reason: 'Redis requires a password. Add it to REDIS_URL.',
    });
  });
});
