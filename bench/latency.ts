// The row group `latency`: how long answers take at a steady rate, while nothing else runs and while a whole list is
// imported and published on the same machine. In: a run. Out: its rows.

import { setTimeout as sleep } from 'node:timers/promises';
import type { BenchRun } from './bench-run.ts';
import { type ListFile, writeGeneratedList } from './generated-list.ts';
import { startImport } from './medref.ts';
import { fieldsOf, fullPages, requestsFor } from './requests.ts';
import type { GroupResult, LatencyFigures, Outcome } from './results.ts';
import { type ContestResult, inRounds } from './rounds.ts';
import { startService } from './service.ts';
import { median, percentile } from './statistics.ts';
import { type SteadyLoad, steadyLoad } from './steady-load.ts';

export const steadyRate = 500;
const shares = [0.5, 0.75, 0.9, 0.95, 0.99, 0.999, 1] as const;

/** Measures the default page at a steady rate, idle and during imports. */
export async function measureLatency(run: BenchRun): Promise<GroupResult> {
  const { importRecords, idleSeconds } = run.sizes;
  // Two lists of which no record is alike, in turn: each import writes, compares and publishes all of it.
  const lists: ListFile[] = [];
  for (const variant of [0, 1]) lists.push(await writeGeneratedList(run.workspace, importRecords, variant));
  const service = await startService(run, (lists[0] as ListFile).path);
  const paths = fullPages(importRecords, 200).map((query) => `/products?${query}`);
  const load: SteadyLoad = {
    origin: service.origin,
    requests: requestsFor(paths, fieldsOf(service.key, 'gzip')),
    perSecond: steadyRate,
  };
  await steadyLoad(load, sleep(1_000)); // A server that has just started is slow for other reasons.
  let imports = 0;
  const [result] = await inRounds(
    [
      {
        title: `${steadyRate} requests/s during an import and idle`,
        subject: async () => {
          const { path } = lists[++imports % 2] as ListFile;
          const { report } = await startImport(run.workspace, service.store, path);
          return steadyLoad(load, report);
        },
        against: async () => {
          await sleep(1_000); // What an import leaves behind is cleared away meanwhile.
          return steadyLoad(load, sleep(idleSeconds * 1_000));
        },
      },
    ],
    run.rounds,
    (title, round) => run.say(`round ${round + 1} of ${run.rounds}: ${title}`),
  );
  await service.stop();
  for (const list of lists) await list.remove();
  return latencyResult(result as ContestResult<Float64Array>);
}

function latencyResult({ samples, failure }: ContestResult<Float64Array>): GroupResult {
  const p99 = (latencies: Float64Array) => percentile(latencies, 0.99);
  const outcome: Outcome =
    failure === null
      ? { state: 'measured', values: samples.map(({ subject, against }) => p99(subject) / p99(against)) }
      : { state: 'failed', reason: failure };
  return {
    comparisons: [
      {
        subject: `medref: p99 at ${steadyRate} requests/s during an import`,
        against: 'medref: the same, idle',
        unit: 'times',
        target: { atMost: 2 },
        outcome,
      },
    ],
    latency:
      failure === null
        ? [
            phase(
              'idle',
              samples.map(({ against }) => against),
            ),
            phase(
              'during an import',
              samples.map(({ subject }) => subject),
            ),
          ]
        : [],
  };
}

function phase(name: string, rounds: readonly Float64Array[]): LatencyFigures {
  return {
    name,
    requests: rounds.reduce((sum, { length }) => sum + length, 0),
    percentiles: shares.map((share) => [share, median(rounds.map((it) => percentile(it, share)))]),
  };
}
