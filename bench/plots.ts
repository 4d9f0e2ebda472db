// In: figures. Out: plots as SVG text, drawn by hand: readable by light and by dark, and told in words to who cannot see.

import { coordinate, escapedText, type PlotWords, shownNumber, svgFigure } from './svg-figure.ts';

/** A horizontal bar on a logarithmic axis. */
export interface Bar {
  readonly label: string;
  readonly value: number;
  readonly kind: 'medref' | 'limit' | 'other';
}

/** A line over shares of requests. */
export interface Curve {
  readonly label: string;
  readonly kind: 'idle' | 'busy';
  readonly points: readonly (readonly [share: number, value: number])[];
}

/** A line over counts. */
export interface Line {
  readonly label: string;
  readonly points: readonly (readonly [count: number, value: number])[];
}

const width = 860;

/** Bars, the longest first, on an axis whose steps are powers of ten. */
export function barPlot(bars: readonly Bar[], words: PlotWords & { axis: string }): string {
  const sorted = [...bars].sort((a, b) => b.value - a.value);
  const labels = { x: 16, end: 396 };
  const plot = { left: 408, right: width - 76, top: 66 };
  const rowHeight = 28;
  const bottom = plot.top + sorted.length * rowHeight;
  const axis = logAxis(
    sorted.map(({ value }) => value),
    plot.left,
    plot.right,
  );
  const rows = sorted.map(({ label, value, kind }, i) => {
    const y = plot.top + i * rowHeight;
    const end = axis.at(value);
    return `
  <text x="${labels.end}" y="${y + 18}" text-anchor="end">${escapedText(label)}</text>
  <rect class="${kind}" x="${plot.left}" y="${y + 4}" width="${coordinate(Math.max(2, end - plot.left))}" height="20" rx="2"/>
  <text class="small" x="${coordinate(end + 6)}" y="${y + 18}">${shownNumber(value)}</text>`;
  });
  const grid = axis.ticks.map(
    (tick) => `
  <line class="grid" x1="${coordinate(axis.at(tick))}" x2="${coordinate(axis.at(tick))}" y1="${plot.top}" y2="${bottom}"/>
  <text class="axis" x="${coordinate(axis.at(tick))}" y="${bottom + 18}" text-anchor="middle">${shownNumber(tick)}</text>`,
  );
  const legend = ['medref', 'limit', 'other'].map((kind, i) => {
    const x = plot.left + i * 120;
    const name = { medref: 'medref', limit: 'the limit', other: 'others' }[kind];
    return `
  <rect class="${kind}" x="${x}" y="42" width="12" height="12" rx="2"/>
  <text class="small" x="${x + 18}" y="52">${name}</text>`;
  });
  return figure(bottom + 46, words, [
    ...[...grid, ...legend, ...rows],
    `\n  <text class="axis" x="${plot.left}" y="${bottom + 36}">${escapedText(words.axis)}</text>`,
  ]);
}

/** Curves over shares of requests; the nearer to all of them, the more room a share has. */
export function curvePlot(
  curves: readonly Curve[],
  words: PlotWords & { axis: string; unit: string },
): string {
  const plot = { left: 84, right: width - 150, top: 66, bottom: 326 };
  const shares = curves[0]?.points.map(([share]) => share) ?? [];
  const x = (index: number) =>
    plot.left + (index * (plot.right - plot.left)) / Math.max(1, shares.length - 1);
  const axis = logAxis(
    curves.flatMap(({ points }) => points.map(([, value]) => value)),
    plot.bottom,
    plot.top,
  );
  const grid = axis.ticks.map(
    (tick) => `
  <line class="grid" x1="${plot.left}" x2="${plot.right}" y1="${coordinate(axis.at(tick))}" y2="${coordinate(axis.at(tick))}"/>
  <text class="axis" x="${plot.left - 10}" y="${coordinate(axis.at(tick) + 4)}" text-anchor="end">${shownNumber(tick)} ${words.unit}</text>`,
  );
  const below = shares.map(
    (share, i) => `
  <text class="axis" x="${coordinate(x(i))}" y="${plot.bottom + 22}" text-anchor="middle">${shareName(share)}</text>`,
  );
  const ends = apart(curves.map(({ points }) => axis.at(points[points.length - 1]?.[1] ?? 1)));
  const lines = curves.map(({ label, kind, points }, nth) => {
    const at = points.map(([, value], i) => `${coordinate(x(i))},${coordinate(axis.at(value))}`);
    const dots = at.map((point) => {
      const [cx, cy] = point.split(',');
      return `<circle class="dot ${kind}" cx="${cx}" cy="${cy}" r="4"/>`;
    });
    return `
  <polyline class="${kind}" stroke-width="2.5" stroke-linejoin="round" points="${at.join(' ')}"/>
  ${dots.join('')}
  <text x="${plot.right + 14}" y="${coordinate((ends[nth] ?? 0) + 5)}">${escapedText(label)}</text>`;
  });
  return figure(plot.bottom + 60, words, [
    ...[...grid, ...below, ...lines],
    `\n  <text class="axis" x="${plot.left}" y="${plot.bottom + 46}">${escapedText(words.axis)}</text>`,
  ]);
}

/** Up to four lines over counts, on axes that begin at nothing: what is straight looks straight. */
export function linePlot(lines: readonly Line[], words: PlotWords & { axis: string; unit: string }): string {
  const plot = { left: 84, right: width - 170, top: 66, bottom: 366 };
  const drawn = lines.filter(({ points }) => points.length > 0).slice(0, 4);
  const counts = drawn.flatMap(({ points }) => points.map(([count]) => count));
  const values = drawn.flatMap(({ points }) => points.map(([, value]) => value));
  const across = linearAxis(counts, plot.left, plot.right);
  const up = linearAxis(values, plot.bottom, plot.top);
  const grid = up.ticks.map(
    (tick) => `
  <line class="grid" x1="${plot.left}" x2="${plot.right}" y1="${coordinate(up.at(tick))}" y2="${coordinate(up.at(tick))}"/>
  <text class="axis" x="${plot.left - 10}" y="${coordinate(up.at(tick) + 4)}" text-anchor="end">${shownNumber(tick)} ${words.unit}</text>`,
  );
  const below = across.ticks.map(
    (tick) => `
  <text class="axis" x="${coordinate(across.at(tick))}" y="${plot.bottom + 22}" text-anchor="middle">${shownNumber(tick / 1_000_000)}</text>`,
  );
  const labels = apartAll(drawn.map(({ points }) => up.at(points[points.length - 1]?.[1] ?? 0)));
  const courses = drawn.map(({ label, points }, nth) => {
    const kind = nth % 2 === 0 ? 'idle' : 'busy';
    const dashes = nth < 2 ? '' : ' stroke-dasharray="7 5"';
    const at = points.map(([count, value]) => [coordinate(across.at(count)), coordinate(up.at(value))]);
    const dots = at.map(([cx, cy]) => `<circle class="dot ${kind}" cx="${cx}" cy="${cy}" r="4"/>`);
    const end = Number(at[at.length - 1]?.[0]);
    return `
  <polyline class="${kind}" stroke-width="2.5" stroke-linejoin="round"${dashes} points="${at.map((it) => it.join(',')).join(' ')}"/>
  ${dots.join('')}
  <text class="small" x="${coordinate(end + 14)}" y="${coordinate((labels[nth] ?? 0) + 5)}">${escapedText(label)}</text>`;
  });
  return figure(plot.bottom + 60, words, [
    ...[...grid, ...below, ...courses],
    `\n  <text class="axis" x="${plot.left}" y="${plot.bottom + 46}">${escapedText(words.axis)}</text>`,
  ]);
}

/** From nothing to the first step that no value is above. */
function linearAxis(values: readonly number[], from: number, to: number) {
  const most = Math.max(...values, Number.MIN_VALUE);
  const power = 10 ** Math.floor(Math.log10(most));
  const step = [0.2, 0.5, 1, 2].map((it) => it * power).find((it) => most / it <= 6) as number;
  const ticks = Array.from({ length: Math.ceil(most / step) + 1 }, (_, i) => i * step);
  const at = (value: number) => from + (value / (ticks[ticks.length - 1] as number)) * (to - from);
  return { ticks, at };
}

/** Heights of labels, of which the lower ones are moved until no two are nearer than a line's height. */
function apartAll(heights: readonly number[]): number[] {
  const moved = [...heights];
  let above = Number.NEGATIVE_INFINITY;
  for (const { height, nth } of heights
    .map((height, nth) => ({ height, nth }))
    .sort((a, b) => a.height - b.height)) {
    above = Math.max(height, above + 16);
    moved[nth] = above;
  }
  return moved;
}

function figure(height: number, words: PlotWords, parts: readonly string[]): string {
  return svgFigure({ ...words, width, height, hasOwnStyle: true }, parts);
}

/** From the power of ten below the least value to the one above the greatest. */
function logAxis(values: readonly number[], from: number, to: number) {
  const least = Math.floor(Math.log10(Math.min(...values)));
  const most = Math.max(least + 1, Math.ceil(Math.log10(Math.max(...values))));
  const ticks = Array.from({ length: most - least + 1 }, (_, i) => 10 ** (least + i));
  const at = (value: number) => from + ((Math.log10(value) - least) / (most - least)) * (to - from);
  return { ticks, at };
}

/** Heights of labels, moved so that no two are nearer than a line's height. */
function apart(heights: readonly number[]): number[] {
  const [first = 0, second] = heights;
  if (second === undefined || Math.abs(first - second) >= 18) return [...heights];
  const middle = (first + second) / 2;
  return first <= second ? [middle - 9, middle + 9] : [middle + 9, middle - 9];
}

function shareName(share: number): string {
  return share === 1 ? 'longest' : share === 0.5 ? 'median' : `p${coordinate(share * 100)}`;
}
