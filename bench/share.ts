// The row group `share`: the CPU time of a request, medref's against that of an answer that is constant. In: a run. Out: what
// many short bursts took, two processes of each in random turns, so that what disturbs the machine meets all of them.

import type { BenchRun } from './bench-run.ts';
import { type BurstTarget, burstsOn } from './bursts.ts';
import { faultOfSome } from './contenders.ts';
import { type LimitName, startLimit, typicalAnswers } from './limit-contenders.ts';
import { serve } from './medref.ts';
import { type MedrefContenders, medrefContenders } from './medref-contenders.ts';
import { readProducts } from './peers/paged-list.ts';
import { threadMicros } from './process-usage.ts';
import type { GroupResult, ShareFigures } from './results.ts';
import { startService } from './service.ts';

/** What is asked, and how many times the constant answer it may take. */
const asked: readonly { readonly name: LimitName & keyof MedrefContenders; readonly atMost: number }[] = [
  { name: 'page', atMost: 1.15 },
  { name: 'record', atMost: 1.15 },
  { name: 'page10', atMost: 1.3 },
  { name: 'nameSearch', atMost: 1.3 },
  { name: 'identityPage', atMost: 2 },
];

/** Measures the CPU time of requests. */
export async function measureShare(run: BenchRun): Promise<GroupResult> {
  if (threadMicros(process.pid) === null) return leftOut('the system does not tell the CPU time of a thread');
  const products = readProducts(run.list);
  const service = await startService(run, run.list);
  const second = await serve(run.workspace, service.store);
  const served = [service, { ...service, origin: second.address, pid: second.pid }];
  const medrefs = await Promise.all(served.map((it) => medrefContenders(it, products)));
  const [medref] = medrefs as [MedrefContenders];
  const samples = await typicalAnswers(medref);
  const limits = [];
  for (const _ of medrefs) limits.push(await startLimit(run, { service, medref, samples }));
  const rows: Row[] = [];
  for (const { name, atMost } of asked) {
    const [mine, theirs] = [medrefs.map((it) => it[name]), limits.map(({ limit }) => limit[name])];
    for (const contender of [...mine, ...theirs]) {
      const fault = await faultOfSome(contender);
      if (fault !== null) throw new Error(`${contender.name}: ${fault}`);
    }
    const figures = { name: medref[name].name.replace('medref: ', ''), target: { atMost } };
    rows.push({ ...figures, ...{ medref: [], limit: [] }, turns: turnsOf({ medref: mine, limit: theirs }) });
  }
  await measureRows(run, rows);
  for (const { stop } of [...limits, second, service]) await stop();
  return { comparisons: [], share: rows.map(({ turns: _, ...figures }) => figures) };
}

/** What is asked, by whom in turn, and what was found. */
interface Row extends ShareFigures {
  readonly medref: number[];
  readonly limit: number[];
  readonly turns: readonly Turn[];
}

/** One process that is asked. */
interface Turn {
  readonly side: 'medref' | 'limit';
  readonly burst: (ms: number) => Promise<number>;
}

function turnsOf(targets: Readonly<Record<Turn['side'], readonly BurstTarget[]>>): Turn[] {
  const turns = (side: Turn['side']) => targets[side].map((target) => ({ side, burst: burstsOn(target) }));
  return [...turns('medref'), ...turns('limit')];
}

async function measureRows(run: BenchRun, rows: readonly Row[]): Promise<void> {
  const { warmUpMs, burstMs, roundsEach } = run.sizes.share;
  for (const { turns } of rows) for (const { burst } of turns) await burst(warmUpMs);
  for (let round = 0; round < run.rounds * roundsEach; round++) {
    if (round % roundsEach === 0) run.say(`round ${round / roundsEach + 1} of ${run.rounds}: bursts`);
    for (const row of rows)
      for (const { side, burst } of shuffled(row.turns)) row[side].push(await burst(burstMs));
  }
}

function shuffled<Item>(items: readonly Item[]): Item[] {
  const placed = items.map((item) => ({ item, place: Math.random() }));
  return placed.sort((a, b) => a.place - b.place).map(({ item }) => item);
}

function leftOut(reason: string): GroupResult {
  const outcome = { state: 'left out', reason } as const;
  const row = { subject: 'all rows of share', against: '–', unit: 'times', target: null, outcome } as const;
  return { comparisons: [row] };
}
