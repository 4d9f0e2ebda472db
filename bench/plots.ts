// In: figures. Out: plots as SVG text, drawn by hand: readable by light and by dark, and told in words to who cannot see.

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

interface Words {
  readonly title: string;
  readonly description: string;
}

const width = 860;
/** Blue and orange that differ for every kind of sight, and stand out on white as on near black. */
const style = `
    text { font: 13px system-ui, -apple-system, 'Segoe UI', sans-serif; fill: #1f2328; }
    .title { font-size: 16px; font-weight: 600; }
    .small, .axis { font-size: 12px; fill: #59636e; }
    .small { paint-order: stroke; stroke: #ffffff; stroke-width: 4px; }
    .grid { stroke: #d1d9e0; stroke-width: 1; }
    .medref { fill: #1f6feb; } .limit { fill: #bf5a00; } .other { fill: #8c959f; }
    .idle { stroke: #1f6feb; fill: none; } .busy { stroke: #bf5a00; fill: none; }
    .dot.idle { fill: #1f6feb; } .dot.busy { fill: #bf5a00; }
    .background { fill: #ffffff; }
    @media (prefers-color-scheme: dark) {
      text { fill: #f0f6fc; }
      .small, .axis { fill: #9198a1; }
      .small { stroke: #0d1117; }
      .grid { stroke: #3d444d; }
      .medref { fill: #4493f8; } .limit { fill: #f0883e; } .other { fill: #6e7681; }
      .idle { stroke: #4493f8; } .busy { stroke: #f0883e; }
      .dot.idle { fill: #4493f8; } .dot.busy { fill: #f0883e; }
      .background { fill: #0d1117; }
    }`;

/** Bars, the longest first, on an axis whose steps are powers of ten. */
export function barPlot(bars: readonly Bar[], words: Words & { axis: string }): string {
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
  <text x="${labels.end}" y="${y + 18}" text-anchor="end">${escaped(label)}</text>
  <rect class="${kind}" x="${plot.left}" y="${y + 4}" width="${number(Math.max(2, end - plot.left))}" height="20" rx="2"/>
  <text class="small" x="${number(end + 6)}" y="${y + 18}">${shown(value)}</text>`;
  });
  const grid = axis.ticks.map(
    (tick) => `
  <line class="grid" x1="${number(axis.at(tick))}" x2="${number(axis.at(tick))}" y1="${plot.top}" y2="${bottom}"/>
  <text class="axis" x="${number(axis.at(tick))}" y="${bottom + 18}" text-anchor="middle">${shown(tick)}</text>`,
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
    `\n  <text class="axis" x="${plot.left}" y="${bottom + 36}">${escaped(words.axis)}</text>`,
  ]);
}

/** Curves over shares of requests; the nearer to all of them, the more room a share has. */
export function curvePlot(curves: readonly Curve[], words: Words & { axis: string; unit: string }): string {
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
  <line class="grid" x1="${plot.left}" x2="${plot.right}" y1="${number(axis.at(tick))}" y2="${number(axis.at(tick))}"/>
  <text class="axis" x="${plot.left - 10}" y="${number(axis.at(tick) + 4)}" text-anchor="end">${shown(tick)} ${words.unit}</text>`,
  );
  const below = shares.map(
    (share, i) => `
  <text class="axis" x="${number(x(i))}" y="${plot.bottom + 22}" text-anchor="middle">${shareName(share)}</text>`,
  );
  const ends = apart(curves.map(({ points }) => axis.at(points[points.length - 1]?.[1] ?? 1)));
  const lines = curves.map(({ label, kind, points }, nth) => {
    const at = points.map(([, value], i) => `${number(x(i))},${number(axis.at(value))}`);
    const dots = at.map((point) => {
      const [cx, cy] = point.split(',');
      return `<circle class="dot ${kind}" cx="${cx}" cy="${cy}" r="4"/>`;
    });
    return `
  <polyline class="${kind}" stroke-width="2.5" stroke-linejoin="round" points="${at.join(' ')}"/>
  ${dots.join('')}
  <text x="${plot.right + 14}" y="${number((ends[nth] ?? 0) + 5)}">${escaped(label)}</text>`;
  });
  return figure(plot.bottom + 60, words, [
    ...[...grid, ...below, ...lines],
    `\n  <text class="axis" x="${plot.left}" y="${plot.bottom + 46}">${escaped(words.axis)}</text>`,
  ]);
}

function figure(height: number, { title, description }: Words, parts: readonly string[]): string {
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" width="${width}" height="${height}" role="img" aria-labelledby="title description">
  <title id="title">${escaped(title)}</title>
  <desc id="description">${escaped(description)}</desc>
  <style>${style}
  </style>
  <rect class="background" width="${width}" height="${height}" rx="6"/>
  <text class="title" x="16" y="28">${escaped(title)}</text>${parts.join('')}
</svg>
`;
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
  return share === 1 ? 'longest' : share === 0.5 ? 'median' : `p${number(share * 100)}`;
}

function shown(value: number): string {
  return value >= 10 ? Math.round(value).toLocaleString('en') : String(Number(value.toPrecision(2)));
}

function number(value: number): string {
  return String(Math.round(value * 10) / 10);
}

function escaped(text: string): string {
  return text.replace(/&/g, '&amp;').replace(/</g, '&lt;').replace(/>/g, '&gt;');
}
