// The metrics of several processes, told as those of one.

import { expect } from 'chai';
import { type Counted, GatheredMetrics } from '../../../api/admin/gathered-metrics.ts';
import { createMetrics, type Metrics } from '../../../api/admin/metrics.ts';

describe('metrics of several processes', () => {
  const countedBy = async ({ registry }: Metrics) => (await registry.getMetricsAsJSON()) as Counted;

  async function processThat(met: number, waiting: number): Promise<Metrics> {
    const metrics = createMetrics();
    metrics.addWaiting(() => waiting);
    for (let n = 0; n < met; n += 1) {
      metrics.countDamage();
      metrics.timeRedis(1);
    }
    return metrics;
  }

  it('are sums; of a process that has ended its counts stay, and what it was at goes', async () => {
    let asked = 0;
    const own = createMetrics();
    const gathered = new GatheredMetrics(own.registry, async () => {
      asked += 1;
    });
    const told = async () => {
      const text = await gathered.metrics();
      const value = (name: string) => Number(new RegExp(`^${name} (\\S+)$`, 'm').exec(text)?.[1]);
      return [
        value('medref_damaged_reads_total'),
        value('medref_redis_round_trip_seconds_count'),
        value('medref_waiting_requests'),
      ];
    };
    own.countDamage();
    gathered.take(1, await countedBy(await processThat(2, 10)));
    gathered.take(2, await countedBy(await processThat(3, 20)));
    expect(await told()).to.deep.equal([6, 5, 30]);
    gathered.end(1);
    expect(await told()).to.deep.equal([6, 5, 20]);
    gathered.take(3, await countedBy(await processThat(1, 0)));
    gathered.end(2);
    gathered.end(4); // It never told anything.
    expect(await told()).to.deep.equal([7, 6, 0]);
    expect(asked).to.equal(3);
  });

  it('tell the latest event loop of all', async () => {
    const name = 'nodejs_eventloop_lag_p99_seconds';
    const lag = (value: number) =>
      [
        { name, help: 'x', type: 'gauge', aggregator: 'average', values: [{ value, labels: {} }] },
      ] as unknown as Counted;
    const gathered = new GatheredMetrics(createMetrics().registry, async () => undefined);
    gathered.take(1, lag(7));
    gathered.take(2, lag(5));
    expect(await gathered.metrics()).to.include(`\n${name} 7\n`);
  });
});
