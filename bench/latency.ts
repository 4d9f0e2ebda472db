// The row group `latency`: how long answers take at a steady rate, while nothing else runs and while a whole list is
// imported and published on the same machine. In: a run. Out: its rows.

import { setTimeout as sleep } from 'node:timers/promises';
import type { Fsync } from '../demo/private-redis.ts';
import type { BenchRun } from './bench-run.ts';
import { type ListFile, writeGeneratedList } from './generated-list.ts';
import { startImport } from './medref.ts';
import { fieldsOf, fullPages, requestsFor } from './requests.ts';
import type { GroupResult, LatencyFigures, Outcome } from './results.ts';
import { type Contest, type ContestResult, inRounds } from './rounds.ts';
import { type Service, startService } from './service.ts';
import { median, percentile } from './statistics.ts';
import { type SteadyLoad, steadyLoad } from './steady-load.ts';

export const steadyRate = 500;
const shares = [0.5, 0.75, 0.9, 0.95, 0.99, 0.999, 1] as const;

/** As Redis is advised to be set up from 7.2 on, and before. */
const setUps: readonly Fsync[] = ['everysec', 'always'];

/** Measures the default page at a steady rate, idle and during imports, with each set-up of Redis. */
export async function measureLatency(run: BenchRun): Promise<GroupResult> {
  const { importRecords } = run.sizes;
  // Two lists of which no record is alike, in turn: each import writes, compares and publishes all of it.
  const lists: ListFile[] = [];
  for (const variant of [0, 1]) lists.push(await writeGeneratedList(run.workspace, importRecords, variant));
  const services: Service[] = [];
  for (const fsync of setUps) services.push(await startService(run, (lists[0] as ListFile).path, fsync));
  const results = await inRounds(
    await Promise.all(
      services.map((service, n) => contest(run, service, { fsync: setUps[n] as Fsync, lists })),
    ),
    run.rounds,
    (title, round) => run.say(`round ${round + 1} of ${run.rounds}: ${title}`),
  );
  for (const { stop } of services) await stop();
  for (const list of lists) await list.remove();
  const found = results.map((result, n) => latencyResult(setUps[n] as Fsync, result));
  return {
    comparisons: found.flatMap(({ comparisons }) => comparisons),
    latency: found.flatMap(({ latency = [] }) => latency),
  };
}

async function contest(
  { workspace, sizes: { importRecords, idleSeconds } }: BenchRun,
  { origin, key, store }: Service,
  { fsync, lists }: { readonly fsync: Fsync; readonly lists: readonly ListFile[] },
): Promise<Contest<Float64Array>> {
  const paths = fullPages(importRecords, 200).map((query) => `/products?${query}`);
  const load: SteadyLoad = {
    origin,
    requests: requestsFor(paths, fieldsOf(key, 'gzip')),
    perSecond: steadyRate,
  };
  await steadyLoad(load, sleep(1_000)); // A server that has just started is slow for other reasons.
  let imports = 0;
  return {
    title: `${steadyRate} requests/s during an import and idle, appendfsync ${fsync}`,
    subject: async () => {
      const { path } = lists[++imports % 2] as ListFile;
      const { report } = await startImport(workspace, store, path);
      return steadyLoad(load, report);
    },
    against: async () => {
      await sleep(1_000); // What an import leaves behind is cleared away meanwhile.
      return steadyLoad(load, sleep(idleSeconds * 1_000));
    },
  };
}

function latencyResult(fsync: Fsync, { samples, failure }: ContestResult<Float64Array>): GroupResult {
  const p99 = (latencies: Float64Array) => percentile(latencies, 0.99);
  const outcome: Outcome =
    failure === null
      ? { state: 'measured', values: samples.map(({ subject, against }) => p99(subject) / p99(against)) }
      : { state: 'failed', reason: failure };
  const phases = () => [
    phase(
      `idle, ${fsync}`,
      samples.map(({ against }) => against),
    ),
    phase(
      `during an import, ${fsync}`,
      samples.map(({ subject }) => subject),
    ),
  ];
  return {
    comparisons: [
      {
        subject: `medref: p99 at ${steadyRate} requests/s during an import, \`appendfsync ${fsync}\``,
        against: 'medref: the same, idle',
        unit: 'times',
        target: { atMost: 2 },
        outcome,
      },
    ],
    latency: failure === null ? phases() : [],
  };
}

function phase(name: string, rounds: readonly Float64Array[]): LatencyFigures {
  return {
    name,
    requests: rounds.reduce((sum, { length }) => sum + length, 0),
    percentiles: shares.map((share) => [share, median(rounds.map((it) => percentile(it, share)))]),
  };
}
