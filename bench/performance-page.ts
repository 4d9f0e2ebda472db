// In: what was measured, where and how. Out: docs/PERFORMANCE.md and its plots, as text; what was not reached is said, too.

import { connections } from './load.ts';
import type { Machine } from './machine.ts';
import { type Bar, barPlot, curvePlot } from './plots.ts';
import type {
  Comparison,
  GroupResult,
  Outcome,
  PlainFigure,
  ServingFigures,
  ShareFigures,
} from './results.ts';
import { median, reaches, summarize, type Target } from './statistics.ts';

/** Everything the page tells. */
export interface Report {
  readonly machine: Machine;
  readonly date: string;
  readonly rounds: number;
  readonly seconds: number;
  readonly warmUpSeconds: number;
  readonly result: Required<GroupResult>;
}

/** Files of a folder, by name. */
export type Page = ReadonlyMap<string, string>;

/** The page with its plots. */
export function performancePage(report: Report): Page {
  const { serving, latency } = report.result;
  const plots = new Map<string, string>();
  if (serving.length > 0) plots.set('performance-serving.svg', servingPlot(serving));
  if (latency.length > 0) plots.set('performance-latency.svg', latencyPlot(latency));
  return new Map([['PERFORMANCE.md', pageText(report, plots)], ...plots]);
}

function pageText(report: Report, plots: ReadonlyMap<string, string>): string {
  const { result, rounds, seconds, warmUpSeconds, machine, date } = report;
  const plot = (name: string, words: string) => (plots.has(name) ? `\n![${words}](${name})\n` : '');
  return `# Performance

How fast medref serves and imports, beside what else could do it on the same machine. This page is written by the
command that measures all of it, and no figure in it comes from anywhere else:

    npm run bench              # everything; -- --rounds 3 is quicker, -- --only serving prints one group of rows
    npm run bench -- --quick   # shows that it works, in under two minutes; its figures mean nothing

${rounds} rounds. In each, every pair is measured in direct succession, and the one that begins changes from round to
round: what else the machine did met both. A figure is the median of the rounds' ratios, with the least and the most
beside it. Requests come from wrk, 32 connections and one thread, ${seconds} s after ${warmUpSeconds} s of warm-up, over
loopback, and rotate over all pages, all ids, names, barcodes and drugs of the list: no cache of one answer helps anyone. Every
server is a process of its own; nothing is pinned to a core, and the load generator runs beside the servers. "By CPU
time" is the same ratio for a second of the servers' CPU time instead of a second by the clock: what else runs on the
machine disturbs it less, and it leaves out the stores.

**The limit** is hapi with this service's own authentication and an answer
that is constant: bytes and headers of medref's own, without a look at the list.

## Machine

${table(['', ''], machine)}

Measured on ${date}.

${resultText(result, plot)}`;
}

/** The tables of what was measured: all of the page but for how and where. */
export function resultText(
  result: Required<GroupResult>,
  plot: (name: string, words: string) => string = () => '',
): string {
  const { comparisons, serving, share, latency, figures } = result;
  const wanted = comparisons.filter(({ target }) => target !== null);
  const others = comparisons.filter(({ target }) => target === null);
  const sections = [
    wanted.length > 0 && `## Must reach\n\n${comparisonTable(wanted, true)}`,
    others.length > 0 && `## Also compared\n\n${comparisonTable(others, false)}`,
    serving.length > 0 &&
      `## Requests per second\n${plot('performance-serving.svg', 'Requests per second of medref and its peers')}\n${servingTable(serving)}\n\nCPU is that of the server's processes and of its store (Redis, PostgreSQL), µs for a request.`,
    share.length > 0 &&
      `## CPU time of a request\n\n${shareTable(share)}\n\n${shareWords(share[0]?.medref.length ?? 0)}`,
    latency.length > 0 &&
      `## Latency at a steady rate\n${plot('performance-latency.svg', 'Latencies at a steady rate, idle and during an import')}\n${latencyTable(latency)}\n\nCounted from when a request was due, so that a stall is charged for all who would have asked meanwhile.`,
    figures.length > 0 && `## Import, walk and memory\n\n${figureTable(figures)}`,
  ];
  return `${sections.filter(Boolean).join('\n\n')}\n`;
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
      ...[
        name,
        targetCell(target, 'times'),
        `**${ratio(times)}**`,
        reaches(target, times) ? 'yes' : '**no**',
      ],
      ...[mine.least, theirs.least].map(ratio),
      ...[mine.median / theirs.median, mine.median, theirs.median].map(ratio),
    ];
  });
  const head = ['Answer', 'Target', 'Least', 'Holds', 'medref, µs', 'the limit, µs'];
  return table([...head, 'Median', 'medref, µs', 'the limit, µs'], rows);
}

function shareWords(bursts: number): string {
  return `How many times the CPU time of the limit's process medref's process takes for a request whose answer has the same bytes; Redis is not
counted. Each row is ${whole(bursts)} bursts of each of the two, over ${connections} connections, by two processes of each in random turns. The
least burst of a process is the one that others on the machine disturbed least; the medians stand beside it. Processors differ:
on another one the same programs have other ratios, since caches, compression and system calls weigh differently there.`;
}

function latencyTable(latency: Required<GroupResult>['latency']): string {
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

function servingPlot(serving: readonly ServingFigures[]): string {
  // The ends of lists are told by their ratios; here they would say the same thing many times.
  const bars = serving
    .filter(({ name }) => !/^medref: (first|last) pages/.test(name))
    .map(({ name, requestsPerSecond }): Bar => {
      const kind = name.startsWith('medref') ? 'medref' : name.startsWith('the limit') ? 'limit' : 'other';
      return { label: name, value: median(requestsPerSecond), kind };
    });
  const most = bars.reduce((best, bar) => (bar.value > best.value ? bar : best));
  const page = bars.find(({ label }) => label.startsWith('medref: page of 200'));
  const told = [most, ...(page ? [page] : [])].map(
    ({ label, value }) => `${label}: ${whole(value)} requests/s`,
  );
  return barPlot(bars, {
    title: 'Requests per second, real list',
    description: `Bars on a logarithmic axis, the fastest first. ${told.join('; ')}. The table below has all figures.`,
    axis: 'requests/s, logarithmic',
  });
}

function latencyPlot(latency: Required<GroupResult>['latency']): string {
  const told = latency.map(({ name, percentiles }) => {
    const p99 = percentiles.find(([share]) => share === 0.99)?.[1] ?? 0;
    return `${name}: 99 of 100 requests within ${ratio(p99)} ms`;
  });
  return curvePlot(
    latency.map(({ name, percentiles }, i) => ({
      ...{ label: name, kind: i === 0 ? 'idle' : 'busy', points: percentiles },
    })),
    {
      title: 'Latency of a page of 200 at a steady rate',
      description: `Two curves of latency over the share of requests. ${told.join('; ')}.`,
      axis: 'share of the requests answered within this time (ms, logarithmic)',
      unit: 'ms',
    },
  );
}
