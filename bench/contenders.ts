// In: who is asked what in a row. Out: the rows, measured in rounds: requests/s of one against the other, and the figures
// of each. What is not there is left out, what does not answer as it should has failed; both say why.

import { askSome, textOf, type WireAnswer } from './answers.ts';
import type { BenchRun } from './bench-run.ts';
import { type LoadSample, type LoadTarget, loadOn } from './load.ts';
import type { Comparison, GroupResult, Outcome, ServingFigures } from './results.ts';
import { type Contest, type ContestResult, inRounds } from './rounds.ts';
import { median, type Target } from './statistics.ts';

/** Someone who can be asked, or why not. */
export type Contender =
  | (LoadTarget & { readonly name: string; readonly expects: Expectation; readonly isMedref?: boolean })
  | { readonly name: string; readonly leftOut: string };

/** Someone who can be asked. */
export type Asked = Extract<Contender, { requests: unknown }>;

/** What the answers are to be like. */
export interface Expectation {
  readonly status: 200 | 304;
  readonly encoding: 'gzip' | 'identity' | 'either';
  /** How many records an answer has; not judged for the constants. */
  readonly records?: 'some' | number;
}

/** One against another. */
export interface Row {
  readonly subject: Contender;
  readonly against: Contender;
  readonly target: Target | null;
}

/** Statuses by which a medref of today says that it has no such route, parameter or representation. */
const notThere = [400, 404, 406];

/** Checks all contenders, measures all rows. */
export async function measureRows(run: BenchRun, rows: readonly Row[]): Promise<GroupResult> {
  const contenders = [...new Set(rows.flatMap(({ subject, against }) => [subject, against]))];
  const checked = new Map<Contender, Checked>();
  for (const contender of contenders) checked.set(contender, await check(run, contender));
  const stateOf = (contender: Contender) => checked.get(contender) as Checked;

  const measurable = rows.filter((row) => [row.subject, row.against].every((it) => 'load' in stateOf(it)));
  const contests = measurable.map((row): Contest<LoadSample> => {
    const [subject, against] = [stateOf(row.subject), stateOf(row.against)] as [Loaded, Loaded];
    return {
      title: `${row.subject.name} against ${row.against.name}`,
      subject: () => named(row.subject, subject),
      against: () => named(row.against, against),
    };
  });
  const results = await inRounds(contests, run.rounds, (title, round) =>
    run.say(`round ${round + 1} of ${run.rounds}: ${title}`),
  );
  const resultOf = new Map(measurable.map((row, i) => [row, results[i] as ContestResult<LoadSample>]));
  return {
    comparisons: rows.map((row) => comparisonOf(row, stateOf, resultOf.get(row))),
    serving: contenders.flatMap((it) => figuresOf(it, stateOf(it), resultOf)),
  };
}

/** A contender after its check. */
type Loaded = { readonly load: () => Promise<LoadSample>; readonly bodyBytes: number };
type Checked = Loaded | Exclude<Outcome, { state: 'measured' }>;

async function named(contender: Contender, { load }: Loaded): Promise<LoadSample> {
  try {
    return await load();
  } catch (error) {
    throw new Error(`${contender.name}: ${(error as Error).message}`);
  }
}

async function check(run: BenchRun, contender: Contender): Promise<Checked> {
  if ('leftOut' in contender) return { state: 'left out', reason: contender.leftOut };
  const answers = await askSome(contender.origin, contender.requests);
  for (const answer of answers) {
    const fault = faultOf(answer, contender.expects);
    if (fault === null) continue;
    const isMissing = contender.isMedref === true && notThere.includes(answer.status);
    if (isMissing) return { state: 'left out', reason: `not there: medref answers ${answer.status}` };
    return { state: 'failed', reason: `${contender.name}: ${fault}` };
  }
  const load = await loadOn(run.workspace, contender, run.sizes.load);
  return { load, bodyBytes: median(answers.map(({ body }) => body.length)) };
}

/** What is wrong with the answers of a contender to some of what it is asked, or `null`. */
export async function faultOfSome({ origin, requests, expects }: Asked): Promise<string | null> {
  const faults = (await askSome(origin, requests)).map((answer) => faultOf(answer, expects));
  return faults.find((it) => it !== null) ?? null;
}

/** What is wrong with an answer, or `null`. */
export function faultOf(answer: WireAnswer, { status, encoding, records }: Expectation): string | null {
  if (answer.status !== status) return `the answer is ${answer.status}, not ${status}`;
  const sent = answer.headers['content-encoding'] ?? 'identity';
  if (encoding !== 'either' && status === 200 && sent !== encoding)
    return `the answer is ${sent}, not ${encoding}`;
  if (records === undefined) return null;
  const body = JSON.parse(textOf(answer)) as { data?: unknown } | unknown[];
  const data = Array.isArray(body) ? body : body.data;
  const count = Array.isArray(data) ? data.length : data === undefined ? 0 : 1;
  if (records === 'some' ? count > 0 : count === records) return null;
  return `the answer has ${count} records, not ${records}`;
}

function comparisonOf(
  { subject, against, target }: Row,
  stateOf: (contender: Contender) => Checked,
  result: ContestResult<LoadSample> | undefined,
): Comparison {
  const absent = [stateOf(subject), stateOf(against)].find((it) => 'state' in it);
  const outcome = absent !== undefined && 'state' in absent ? absent : outcomeOf(result);
  const byCpuTime = byCpuTimeOf(result);
  return { subject: subject.name, against: against.name, unit: 'times', target, outcome, byCpuTime };
}

/** How many times the requests that a second of CPU time is good for; the stores' time is not counted. */
function byCpuTimeOf(result: ContestResult<LoadSample> | undefined): number[] {
  return (result?.samples ?? []).flatMap(({ subject, against }) =>
    subject.serverMicros === null || against.serverMicros === null
      ? []
      : [against.serverMicros / subject.serverMicros],
  );
}

function outcomeOf(result: ContestResult<LoadSample> | undefined): Outcome {
  if (result === undefined) return { state: 'failed', reason: 'it was not measured' };
  if (result.failure !== null) return { state: 'failed', reason: result.failure };
  const values = result.samples.map((it) => it.subject.requestsPerSecond / it.against.requestsPerSecond);
  return { state: 'measured', values };
}

/** The figures of one contender in all rows that it is in. */
function figuresOf(
  contender: Contender,
  state: Checked,
  results: ReadonlyMap<Row, ContestResult<LoadSample>>,
): ServingFigures[] {
  if ('state' in state) return [];
  const samples = [...results].flatMap(([row, { samples }]) => [
    ...(row.subject === contender ? samples.map((it) => it.subject) : []),
    ...(row.against === contender ? samples.map((it) => it.against) : []),
  ]);
  if (samples.length === 0) return [];
  const known = (values: (number | null)[]) => values.filter((it) => it !== null);
  return [
    {
      name: contender.name,
      requestsPerSecond: samples.map((it) => it.requestsPerSecond),
      serverMicros: known(samples.map((it) => it.serverMicros)),
      storeMicros: known(samples.map((it) => it.storeMicros)),
      bodyBytes: state.bodyBytes,
    },
  ];
}
