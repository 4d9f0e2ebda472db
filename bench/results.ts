// What the measurements hand to the page: comparisons with what they must reach, and plain figures, a number a round.

import type { Target } from './statistics.ts';

/** How it ended: measured, or why it was not. */
export type Outcome =
  | { readonly state: 'measured'; readonly values: readonly number[] }
  /** What it needs is not on this machine, or not in this build of medref. */
  | { readonly state: 'left out'; readonly reason: string }
  /** It was there and did not do what it should. */
  | { readonly state: 'failed'; readonly reason: string };

/** One thing measured against another, or against a bound. */
export interface Comparison {
  readonly subject: string;
  readonly against: string;
  /** What the values are: `times` for ratios. */
  readonly unit: 'times' | 'MB';
  readonly target: Target | null;
  readonly outcome: Outcome;
  /** The same ratio by the CPU time of the servers, which others on the machine disturb less; empty where it is not known. */
  readonly byCpuTime?: readonly number[];
}

/** What one contender did in its rounds. */
export interface ServingFigures {
  readonly name: string;
  readonly requestsPerSecond: readonly number[];
  /** CPU time of the server's processes for a request, in µs; empty where the system does not tell. */
  readonly serverMicros: readonly number[];
  /** The same of its store: Redis or PostgreSQL. */
  readonly storeMicros: readonly number[];
  /** Of one answer: body as sent. */
  readonly bodyBytes: number;
}

/** Any other figure that is worth a line. */
export interface PlainFigure {
  readonly name: string;
  readonly unit: string;
  readonly outcome: Outcome;
}

/** Latencies of one phase in ms. */
export interface LatencyFigures {
  readonly name: string;
  readonly requests: number;
  /** Share of the requests → ms, median over the rounds. */
  readonly percentiles: readonly (readonly [share: number, ms: number])[];
}

/** A table of a group's own. */
export interface OwnTable {
  /** What is said before it. */
  readonly words: string;
  readonly head: readonly string[];
  readonly rows: readonly (readonly string[])[];
}

/** A plot of a group's own, a file beside the page. */
export interface OwnPlot {
  readonly name: string;
  readonly title: string;
  readonly svg: string;
}

/** What a row group found. */
export interface GroupResult {
  readonly comparisons: readonly Comparison[];
  readonly serving?: readonly ServingFigures[];
  readonly latency?: readonly LatencyFigures[];
  readonly figures?: readonly PlainFigure[];
  readonly tables?: readonly OwnTable[];
  readonly plots?: readonly OwnPlot[];
}
