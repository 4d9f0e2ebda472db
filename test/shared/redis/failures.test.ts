// Tests refusals with real replies of Redis: which refusals end by themselves, and which an operator must repair.

import { expect } from 'chai';
import { connectForWriting, type Redis } from '../../../shared/redis/connections.ts';
import { isRedisUnavailable, plainReason, refusalKind } from '../../../shared/redis/failures.ts';
import { useRedis } from '../../support/redis-server.ts';

describe('a refusal of Redis', () => {
  const server = useRedis();
  let redis: Redis;
  before(async () => {
    redis = await connectForWriting(server().url);
  });
  after(() => redis.disconnect());

  const errorOf = (...[command = '', ...args]: string[]) =>
    redis.call(command, ...args).then(
      () => new Error('It was not refused.'),
      (error: unknown) => error,
    );
  const kindOf = async (...command: string[]) => {
    const error = await errorOf(...command);
    return [refusalKind(error), isRedisUnavailable(error)];
  };

  it('is "forbidden" if a user lacks a right or does not exist', async () => {
    expect(await kindOf('AUTH', 'nobody', 'x')).to.deep.equal(['forbidden', false]);
    await redis.call('ACL', 'SETUSER', 'default', '-hget');
    expect(await kindOf('HGET', 'a', 'b')).to.deep.equal(['forbidden', false]);
    await redis.call('ACL', 'SETUSER', 'default', '+hget');
  });

  it('is "full" at the memory limit', async () => {
    await redis.config('SET', 'maxmemory', '1');
    expect(await kindOf('SET', 'a', 'b')).to.deep.equal(['full', false]);
    await redis.config('SET', 'maxmemory', '0');
  });

  it('is "refused" if Redis does not know the command', async () => {
    expect(await kindOf('NOSUCH')).to.deep.equal(['refused', false]);
    expect(await kindOf('HGET', 'a')).to.deep.equal(['refused', false]);
  });

  it('is temporary on a replica until it is promoted', async () => {
    await redis.replicaof('127.0.0.1', 1);
    expect(await kindOf('SET', 'a', 'b')).to.deep.equal([null, true]);
    await redis.config('SET', 'replica-serve-stale-data', 'no');
    expect(await kindOf('GET', 'a')).to.deep.equal([null, true]);
    await redis.call('REPLICAOF', 'NO', 'ONE');
  });

  it('is temporary during a failover or a move in a Cluster', () => {
    const replies = [
      ...[
        'MOVED 1 h:1',
        'ASK 1 h:1',
        'CLUSTERDOWN The cluster is down',
        'TRYAGAIN Multiple keys',
        'LOADING Redis',
      ],
      ...[
        'MASTERDOWN Link',
        'UNBLOCKED force',
        'READONLY You',
        'NOREPLICAS Not enough good replicas to write.',
      ],
    ];
    const kinds = replies.map((message) => {
      const error = Object.assign(new Error(message), { name: 'ReplyError' });
      return [refusalKind(error), isRedisUnavailable(error)];
    });
    expect(kinds).to.deep.equal(replies.map(() => [null, true]));
  });

  it('says what to do on a node of a Cluster, and without a primary or replicas', () => {
    const reported = (message: string) =>
      plainReason(Object.assign(new Error(message), { name: 'ReplyError' }));
    expect(reported('MOVED 1 h:1')).to.match(/node of a Cluster\. Set REDIS_URL to redis\+cluster:/);
    expect(reported('CLUSTERDOWN Hash slot not served')).to.match(
      /lacks a primary for some slots\. See CLUSTER INFO/,
    );
    expect(reported('MASTERDOWN Link with MASTER is down')).to.match(/has lost its primary\. Set REDIS_URL/);
    expect(reported('NOREPLICAS Not enough')).to.match(/fewer replicas than min-replicas-to-write\. Restore/);
  });

  it('is found after the prefix that Redis 6.2 adds in scripts', () => {
    const inScript = (reply: string) =>
      Object.assign(
        new Error(`ERR Error running script (call to f_9f36): @user_script:35: @user_script: 35: -${reply}`),
        { name: 'ReplyError' },
      );
    const oom = inScript("OOM command not allowed when used memory > 'maxmemory'.");
    expect([refusalKind(oom), isRedisUnavailable(oom)]).to.deep.equal(['full', false]);
    expect(plainReason(oom)).to.match(/^Redis has reached its maxmemory\./);
    const readOnly = inScript("READONLY You can't write against a read only replica.");
    expect([refusalKind(readOnly), isRedisUnavailable(readOnly)]).to.deep.equal([null, true]);
    const ours = inScript('ERR value is not an integer or out of range');
    expect([refusalKind(ours), isRedisUnavailable(ours)]).to.deep.equal(['refused', false]);
  });

  it('names the limit of open files, also for failed connections', () => {
    const limit =
      'This process has reached its limit of open files (EMFILE). Raise it with "ulimit -n", or LimitNOFILE= of its systemd unit.';
    for (const message of [
      'connect EMFILE 127.0.0.1:6379 - Local (undefined:undefined)',
      "EMFILE: too many open files, open '/opt/medref/dist/x.js'",
      'Redis at h:6379 cannot be used: connect EMFILE h:6379. Start it, or set REDIS_URL.',
    ])
      expect(plainReason(Object.assign(new Error(message), { syscall: 'connect' }))).to.equal(limit);
    expect(plainReason(new Error('ENFILE: file table overflow'))).to.match(
      /^This machine has .* fs\.file-max\.$/,
    );
    const list =
      'file:///a cannot be opened: this process has reached its limit of open files (EMFILE). Raise it.';
    expect(plainReason(new Error(list)), 'a message that already names the limit').to.equal(list);
  });

  it('is no refusal if the connection failed', () => {
    const gone = Object.assign(new Error('connect ECONNREFUSED'), { syscall: 'connect' });
    expect([refusalKind(gone), isRedisUnavailable(gone)]).to.deep.equal([null, true]);
    expect([refusalKind(new TypeError('x')), isRedisUnavailable(new TypeError('x'))]).to.deep.equal([
      null,
      false,
    ]);
  });
});
