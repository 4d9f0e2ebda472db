// In: what was measured, where and how. Out: docs/PERFORMANCE.md, a section for each row group, and its plots, as text; what
// was not reached is said, too.

import { connections } from './load.ts';
import type { Machine } from './machine.ts';
import { type Bar, barPlot, type Curve, curvePlot } from './plots.ts';
import type {
  Comparison,
  GroupResult,
  LatencyFigures,
  Outcome,
  OwnPlot,
  PlainFigure,
  ServingFigures,
  ShareFigures,
} from './results.ts';
import { median, reaches, summarize, type Target } from './statistics.ts';

/** What a row group found, and when, where and how. */
export interface Report {
  /** Of the group. */
  readonly name: string;
  readonly heading: string;
  readonly machine: Machine;
  readonly date: string;
  readonly rounds: number;
  readonly result: GroupResult;
}

/** The part of the page that is a row group's own. */
export interface Section {
  readonly text: string;
  /** Files beside the page, by name. */
  readonly plots: ReadonlyMap<string, string>;
}

/** How the rows of wrk were measured. */
export interface LoadTimes {
  readonly seconds: number;
  readonly warmUpSeconds: number;
}

/** The whole page. @param sections their texts, in order */
export function performancePage(sections: readonly string[], { seconds, warmUpSeconds }: LoadTimes): string {
  return `# Performance

How fast medref serves and imports, beside what else could do it on the same machine. This page is written by the
command that measures all of it, and no figure in it comes from anywhere else:

    npm run bench                      # everything, some two hours; -- --rounds 3 is quicker
    npm run bench -- --only serving    # one group of rows, and its section of this page
    npm run bench -- --quick           # shows that it works, in some minutes; its figures mean nothing, and it writes nothing

Each section says when and on what it was measured. ${verdict(sections.join(''))}

In each round, every pair is measured in direct succession, and the one that begins changes from round to
round: what else the machine did met both. A figure is the median of the rounds' ratios, with the least and the most
beside it. Requests come from wrk, 32 connections and one thread, ${seconds} s after ${warmUpSeconds} s of warm-up, over
loopback, and rotate over all pages, all ids, names, barcodes and drugs of the list: no cache of one answer helps anyone. Every
server is a process of its own; nothing is pinned to a core, and the load generator runs beside the servers. "By CPU
time" is the same ratio for a second of the servers' CPU time instead of a second by the clock: what else runs on the
machine disturbs it less, and it leaves out the stores. CPU is that of the server's processes and of its store (Redis,
PostgreSQL), µs for a request.

**The limit** is hapi with this service's own authentication and an answer
that is constant: bytes and headers of medref's own, without a look at the list.

${sections.join('\n')}`;
}

/** The section of a row group. */
export function groupSection({ name, heading, machine, date, rounds, result }: Report): Section {
  const { serving = [], latency = [], plots: own = [] } = result;
  const plots: OwnPlot[] = [
    ...(serving.length > 0 ? [{ name: `performance-${name}.svg`, ...servingPlot(serving) }] : []),
    ...(latency.length > 0 ? [{ name: `performance-${name}.svg`, ...latencyPlot(latency) }] : []),
    ...own,
  ];
  const where = machine.map(([part, value]) => `${part} ${value}`).join('; ');
  const parts = [
    `## ${heading}`,
    `Measured on ${date} in ${rounds} ${rounds === 1 ? 'round' : 'rounds'}. ${where}.`,
    ...tablesOf(result),
    ...plots.map(({ name: file, title }) => `![${title}](${file})`),
  ];
  return { text: `${parts.join('\n\n')}\n`, plots: new Map(plots.map((it) => [it.name, it.svg])) };
}

/** The tables of what a row group found: all of its section but for how, where and the plots. */
export function resultText(result: GroupResult): string {
  return `${tablesOf(result).join('\n\n')}\n`;
}

function tablesOf({
  comparisons,
  serving = [],
  share = [],
  latency = [],
  figures = [],
  tables = [],
}: GroupResult): string[] {
  const wanted = comparisons.filter(({ target }) => target !== null);
  const others = comparisons.filter(({ target }) => target === null);
  return [
    ...(wanted.length > 0 ? [comparisonTable(wanted, true)] : []),
    ...(others.length > 0 ? [comparisonTable(others, false)] : []),
    ...tables.flatMap(({ words, head, rows }) => [words, table(head, rows)]),
    ...(serving.length > 0 ? [servingTable(serving)] : []),
    ...(share.length > 0 ? [shareTable(share), shareWords(share[0]?.medref.length ?? 0)] : []),
    ...(latency.length > 0
      ? [
          latencyTable(latency),
          'Counted from when a request was due, so that a stall is charged for all who would have asked meanwhile.',
        ]
      : []),
    ...(figures.length > 0 ? [figureTable(figures)] : []),
  ];
}

/** How many targets are held, by the tables of the page: some of them may come from the page as it was before. */
function verdict(text: string): string {
  const count = (cell: RegExp) => text.match(cell)?.length ?? 0;
  const [held, missed] = [count(/ \| yes \| [^|\n]* \|$/gm), count(/ \| \*\*no\*\* \| [^|\n]* \|$/gm)];
  return `Of the ${held + missed} targets that were measured, ${missed === 0 ? 'all are held' : `**${missed} ${missed === 1 ? 'is' : 'are'} not held**`}.`;
}
// ---- tables

function comparisonTable(comparisons: readonly Comparison[], withTarget: boolean): string {
  const head = withTarget
    ? ['What', 'Against', 'Target', 'Median', 'Least to most', 'Holds', 'By CPU time']
    : ['What', 'Against', 'Median', 'Least to most', 'By CPU time'];
  const rows = comparisons.map(({ subject, against, unit, target, outcome, byCpuTime = [] }) => {
    const { middle, spread } = outcomeCells(outcome, unit);
    const cpu = byCpuTime.length === 0 ? '–' : ratio(median(byCpuTime));
    return target === null
      ? [subject, against, middle, spread, cpu]
      : [subject, against, targetCell(target, unit), middle, spread, holdsCell(target, outcome), cpu];
  });
  return table(head, rows);
}

function outcomeCells(outcome: Outcome, unit: string): { middle: string; spread: string } {
  if (outcome.state !== 'measured') return { middle: outcome.state, spread: outcome.reason };
  const { median: middle, least, most } = summarize(outcome.values);
  const spread = outcome.values.length === 1 ? 'one measurement' : `${ratio(least)} to ${ratio(most)}`;
  return { middle: `**${ratio(middle)}**${suffix(unit)}`, spread };
}

function targetCell(target: Target, unit: string): string {
  return 'atLeast' in target ? `≥ ${target.atLeast}${suffix(unit)}` : `≤ ${target.atMost}${suffix(unit)}`;
}

function holdsCell(target: Target, outcome: Outcome): string {
  if (outcome.state !== 'measured') return '–';
  return reaches(target, median(outcome.values)) ? 'yes' : '**no**';
}

function servingTable(serving: readonly ServingFigures[]): string {
  const rows = [...serving]
    .sort((a, b) => median(b.requestsPerSecond) - median(a.requestsPerSecond))
    .map(({ name, requestsPerSecond, serverMicros, storeMicros, bodyBytes }) => {
      const { median: middle, least, most } = summarize(requestsPerSecond);
      return [
        name,
        whole(middle),
        `${whole(least)} to ${whole(most)}`,
        medianOrDash(serverMicros),
        medianOrDash(storeMicros),
        whole(bodyBytes),
      ];
    });
  return table(
    ['Server and answer', 'Requests/s', 'Least to most', 'CPU, server', 'CPU, store', 'Body, bytes'],
    rows,
  );
}

function shareTable(share: readonly ShareFigures[]): string {
  const rows = share.map(({ name, target, medref, limit }) => {
    const [mine, theirs] = [summarize(medref), summarize(limit)];
    const times = mine.least / theirs.least;
    return [
      ...[name, targetCell(target, 'times'), `**${ratio(times)}**`],
      ...[mine.least, theirs.least, mine.median, theirs.median].map(ratio),
      ...[reaches(target, times) ? 'yes' : '**no**', ratio(mine.median / theirs.median)],
    ];
  });
  const head = ['Answer', 'Target', 'By the least', 'medref, least', 'the limit, least'];
  return table([...head, 'medref, median', 'the limit, median', 'Holds', 'By the medians'], rows);
}

function shareWords(bursts: number): string {
  return `How many times the CPU time of the limit's process medref's process takes for a request whose answer has the same bytes, and
both in µs; Redis is not counted. Each row is ${whole(bursts)} bursts of each of the two, over ${connections} connections, by two
processes of each in random turns. The least burst is the one that others on the machine disturbed least; the medians stand beside
it. Processors differ: on another one the same programs have other ratios, since caches, compression and system calls weigh
differently there.`;
}

function latencyTable(latency: readonly LatencyFigures[]): string {
  const shares = latency[0]?.percentiles.map(([share]) => share) ?? [];
  const names = shares.map((share) => (share === 1 ? 'longest' : `${Number((share * 100).toFixed(1))} %`));
  const rows = latency.map(({ name, requests, percentiles }) => [
    name,
    whole(requests),
    ...percentiles.map(([, ms]) => `${ratio(ms)} ms`),
  ]);
  return table(['Phase', 'Requests', ...names], rows);
}

function figureTable(figures: readonly PlainFigure[]): string {
  const rows = figures.map(({ name, unit, outcome }) => {
    if (outcome.state !== 'measured') return [name, outcome.state, outcome.reason];
    const { median: middle, least, most } = summarize(outcome.values);
    const spread = outcome.values.length === 1 ? 'one measurement' : `${figure(least)} to ${figure(most)}`;
    return [name, `${figure(middle)} ${unit}`, spread];
  });
  return table(['What', 'Median', 'Least to most'], rows);
}

function table(head: readonly string[], rows: readonly (readonly string[])[]): string {
  const line = (cells: readonly string[]) =>
    `| ${cells.map((cell) => cell.replace(/\|/g, '\\|').replace(/\s+/g, ' ')).join(' | ')} |`;
  return [line(head), `|${head.map(() => '---').join('|')}|`, ...rows.map(line)].join('\n');
}

/** Three digits that mean something; from 100 on, no fraction. */
function ratio(value: number): string {
  return value >= 100 ? whole(value) : value >= 10 ? value.toFixed(1) : value.toFixed(2);
}

function figure(value: number): string {
  return value >= 1_000 ? whole(Number(value.toPrecision(4))) : ratio(value);
}

function whole(value: number): string {
  return Math.round(value).toLocaleString('en');
}

function medianOrDash(values: readonly number[]): string {
  return values.length === 0 ? '–' : whole(median(values));
}

function suffix(unit: string): string {
  return unit === 'times' ? '' : ` ${unit}`;
}

// ---- plots

type Drawing = Pick<OwnPlot, 'title' | 'svg'>;

function servingPlot(serving: readonly ServingFigures[]): Drawing {
  const bars = serving.map(({ name, requestsPerSecond }): Bar => {
    const kind = name.startsWith('medref') ? 'medref' : name.startsWith('the limit') ? 'limit' : 'other';
    return { label: name, value: median(requestsPerSecond), kind };
  });
  const most = bars.reduce((best, bar) => (bar.value > best.value ? bar : best));
  const page = bars.find(({ label }) => label.startsWith('medref: page of 200'));
  const told = [most, ...(page && page !== most ? [page] : [])].map(
    ({ label, value }) => `${label}: ${whole(value)} requests/s`,
  );
  const title = 'Requests per second';
  const description = `Bars on a logarithmic axis, the fastest first. ${told.join('; ')}. The table has all figures.`;
  return { title, svg: barPlot(bars, { title, description, axis: 'requests/s, logarithmic' }) };
}

/** The first two phases. */
function latencyPlot([idle, busy]: readonly LatencyFigures[]): Drawing {
  const latency = [idle, busy].filter((it) => it !== undefined);
  const told = latency.map(({ name, percentiles }) => {
    const p99 = percentiles.find(([share]) => share === 0.99)?.[1] ?? 0;
    return `${name}: 99 of 100 requests within ${ratio(p99)} ms`;
  });
  const curves = latency.map(
    ({ name, percentiles }): Curve => ({
      ...{
        label: name,
        kind: name.startsWith('idle') ? 'idle' : 'busy',
        points: percentiles,
      },
    }),
  );
  const title = 'Latency of a page of 200 at a steady rate';
  const description = `Two curves of latency over the share of requests. ${told.join('; ')}.`;
  const axis = 'share of the requests answered within this time (ms, logarithmic)';
  return { title, svg: curvePlot(curves, { title, description, axis, unit: 'ms' }) };
}
