// Tests that the metrics of several processes are reported as the metrics of one process.

import { expect } from 'chai';
import { createMetrics, type Metrics, type MetricValues, WorkerMetrics } from '../../../api/admin/metrics.ts';

describe('metrics of several processes', () => {
  const countedBy = async ({ registry }: Metrics) => (await registry.getMetricsAsJSON()) as MetricValues;

  async function processThat(met: number, waiting: number): Promise<Metrics> {
    const metrics = createMetrics();
    metrics.addWaiting(() => waiting);
    for (let n = 0; n < met; n += 1) {
      metrics.countDamage();
      metrics.timeRedis(1);
    }
    return metrics;
  }

  it('are sums; the counts of an ended process stay, and its gauges disappear', async () => {
    let asked = 0;
    const own = createMetrics();
    const gathered = new WorkerMetrics(own.registry, async () => {
      asked += 1;
    });
    const reported = async () => {
      const text = await gathered.metrics();
      const value = (name: string) => Number(new RegExp(`^${name} (\\S+)$`, 'm').exec(text)?.[1]);
      return [
        value('medref_damaged_reads_total'),
        value('medref_redis_round_trip_seconds_count'),
        value('medref_waiting_requests'),
      ];
    };
    own.countDamage();
    gathered.set(1, await countedBy(await processThat(2, 10)));
    gathered.set(2, await countedBy(await processThat(3, 20)));
    expect(await reported()).to.deep.equal([6, 5, 30]);
    gathered.end(1);
    expect(await reported()).to.deep.equal([6, 5, 20]);
    gathered.set(3, await countedBy(await processThat(1, 0)));
    gathered.end(2);
    gathered.end(4); // It never reported anything.
    expect(await reported()).to.deep.equal([7, 6, 0]);
    expect(asked).to.equal(3);
  });

  it('show the slowest event loop', async () => {
    const name = 'nodejs_eventloop_lag_p99_seconds';
    const lag = (value: number) =>
      [
        { name, help: 'x', type: 'gauge', aggregator: 'average', values: [{ value, labels: {} }] },
      ] as unknown as MetricValues;
    const gathered = new WorkerMetrics(createMetrics().registry, async () => undefined);
    gathered.set(1, lag(7));
    gathered.set(2, lag(5));
    expect(await gathered.metrics()).to.include(`\n${name} 7\n`);
  });
});
