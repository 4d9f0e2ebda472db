// In: a figure of each of several runs. Out: its course as SVG text: a mark for each run, told apart by shape and by colour.

import { coordinate, escapedText, shownNumber, svgFigure } from '../../bench/svg-figure.ts';

/** How a run ended, as its mark tells it. */
export type RunKind = 'published' | 'unchanged' | 'refused' | 'failed' | 'otherwise';

/** One run. */
export interface PlottedRun {
  readonly kind: RunKind;
  /** The figure; `null`: it has none, and no mark. */
  readonly value: number | null;
  /** Of its mark, for who points at it. */
  readonly label: string;
}

/** What is plotted. */
export interface RunPlotOptions {
  readonly name: string;
  readonly title: string;
  readonly description: string;
  /** What stands below the first run and the last one. */
  readonly ends: readonly [first: string, last: string];
}

const size = { width: 400, height: 190 };
const plot = { left: 62, right: 384, top: 48, bottom: 150 };

/** Draws the course of a figure over runs, the earliest first, evenly apart; the axis begins at 0. */
export function runPlot(
  runs: readonly PlottedRun[],
  { name, title, description, ends }: RunPlotOptions,
): string {
  const ticks = linearTicks(Math.max(0, ...runs.map(({ value }) => value ?? 0)));
  const most = ticks.at(-1) as number;
  const y = (value: number) => plot.bottom - (value / most) * (plot.bottom - plot.top);
  const stride = (plot.right - plot.left) / Math.max(1, runs.length);
  const x = (index: number) => plot.left + stride * (index + 0.5);
  const grid = ticks.map(
    (tick) => `
  <line class="grid" x1="${plot.left}" x2="${plot.right}" y1="${coordinate(y(tick))}" y2="${coordinate(y(tick))}"/>
  <text class="axis" x="${plot.left - 8}" y="${coordinate(y(tick) + 4)}" text-anchor="end">${shownNumber(tick)}</text>`,
  );
  const marked = runs.flatMap(({ value, ...run }, i) =>
    value === null ? [] : [{ ...run, x: x(i), y: y(value) }],
  );
  const course = marked.map((it) => `${coordinate(it.x)},${coordinate(it.y)}`).join(' ');
  const marks = marked.map(
    (it) =>
      `\n  <g class="mark ${it.kind}"><title>${escapedText(it.label)}</title>${shapes[it.kind](it.x, it.y)}</g>`,
  );
  const [first, last] = ends;
  return svgFigure({ ...size, name, title, description, hasOwnStyle: false }, [
    ...grid,
    `\n  <polyline class="course" points="${course}"/>`,
    ...marks,
    `\n  <text class="axis" x="${plot.left}" y="${plot.bottom + 24}">${escapedText(first)}</text>`,
    runs.length > 1
      ? `\n  <text class="axis" x="${plot.right}" y="${plot.bottom + 24}" text-anchor="end">${escapedText(last)}</text>`
      : '',
  ]);
}

const shapes: Readonly<Record<RunKind, (x: number, y: number) => string>> = {
  published: (x, y) => `<circle cx="${coordinate(x)}" cy="${coordinate(y)}" r="4"/>`,
  unchanged: (x, y) => `<circle cx="${coordinate(x)}" cy="${coordinate(y)}" r="3.5"/>`,
  refused: (x, y) => `<path d="M${coordinate(x)} ${coordinate(y - 5)}l5 5-5 5-5-5z"/>`,
  failed: (x, y) => `<path d="M${coordinate(x - 4)} ${coordinate(y - 4)}l8 8m0-8l-8 8"/>`,
  otherwise: (x, y) => `<rect x="${coordinate(x - 3)}" y="${coordinate(y - 3)}" width="6" height="6"/>`,
};

/** The same marks, beside their words. */
export function runMark(kind: RunKind): string {
  return `<svg class="plot key" viewBox="0 0 14 14" width="14" height="14" aria-hidden="true"><g class="mark ${kind}">${shapes[kind](7, 7)}</g></svg>`;
}

/** From 0 up to a value or beyond it, in steps of 1, 2 or 5 times a power of ten. */
function linearTicks(most: number): number[] {
  const rough = (most || 1) / 3;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map((it) => it * power).find((it) => it >= rough * 0.999) as number;
  const count = Math.max(1, Math.ceil((most || 1) / step - 1e-9));
  return Array.from({ length: count + 1 }, (_, i) => Number((i * step).toPrecision(12)));
}
