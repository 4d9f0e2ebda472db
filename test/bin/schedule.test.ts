import { Writable } from 'node:stream';
import { setTimeout as sleep } from 'node:timers/promises';
import { expect } from 'chai';
import { connectForWriting } from '../../shared/redis/connections.ts';
import { productKeys as keys } from '../support/keys.ts';
import { medref } from '../support/medref.ts';
import { products } from '../support/records.ts';
import { useRedis } from '../support/redis-server.ts';
import { upstreamServers } from '../support/upstream-server.ts';

describe('the schedule, as a command', () => {
  const server = useRedis();
  const startUpstream = upstreamServers();

  it('ends an import that came due before it ends itself, when it is asked to stop', async () => {
    const upstream = await startUpstream((response, _request, nth) => {
      if (nth === 1) response.end(JSON.stringify(products(3)));
      else response.write('[');
    });
    const env = { REDIS_URL: server().url, PRODUCTS_URL: upstream.url().href, LOG_LEVEL: 'silent' };
    expect((await medref(['import'], env)).code).to.equal(0);
    const { readSettings } = await import('../../config/settings.ts');
    const { scheduleCommand } = await import('../../bin/commands/schedule.ts');
    const stop = new AbortController();
    const nowhere = () => new Writable({ write: (_chunk, _encoding, done) => done() });
    const everySecond = '* * * * * *'; // A sixth field, which settings refuse, spares this test a minute.
    const nothing = () => undefined;
    const running = scheduleCommand(
      {
        settings: { ...readSettings(env), importCron: everySecond },
        ...{ stdout: nowhere(), stderr: nowhere(), stopSignal: () => stop.signal },
        ...{ log: nothing, giveWay: nothing, stayUp: nothing, mindResults: nothing },
      },
      {},
    );
    while (upstream.requests.length < 2) await sleep(20);
    stop.abort(new Error('It was stopped by SIGTERM.'));
    expect(await running).to.equal(0);
    const redis = await connectForWriting(server().url);
    try {
      expect(await redis.exists(keys.lock, keys.staged)).to.equal(0);
      const [report] = await redis.xrevrange(keys.imports, '+', '-', 'COUNT', 1);
      expect(JSON.parse(report?.[1][1] ?? '{}')).to.deep.include({
        ...{ outcome: 'failed', reason: 'It was stopped by SIGTERM.' },
      });
    } finally {
      redis.disconnect();
    }
  });
});
