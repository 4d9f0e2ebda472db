// What every plot is made of: its frame, its words for who cannot see it, its colours by light and by dark, its numbers.

/** What a plot says in words. */
export interface PlotWords {
  readonly title: string;
  readonly description: string;
}

/** How large a plot is, and where its style comes from. */
export interface PlotFrame extends PlotWords {
  readonly width: number;
  readonly height: number;
  /** Told apart from the other plots of a page by this; one that is a file of its own needs none. */
  readonly name?: string;
  /** Whether the style is in the file; else the page has {@link plotStyle}. */
  readonly hasOwnStyle: boolean;
}

/** Blue and orange that differ for every kind of sight, and stand out on white as on near black. */
export const plotStyle = `
    .plot text { font: 13px system-ui, -apple-system, 'Segoe UI', sans-serif; fill: #1f2328; }
    .plot .title { font-size: 16px; font-weight: 600; }
    .plot .small, .plot .axis { font-size: 12px; fill: #59636e; }
    .plot .small { paint-order: stroke; stroke: #ffffff; stroke-width: 4px; }
    .plot .grid { stroke: #d1d9e0; stroke-width: 1; }
    .plot .medref { fill: #1f6feb; } .plot .limit { fill: #bf5a00; } .plot .other { fill: #8c959f; }
    .plot .idle { stroke: #1f6feb; fill: none; } .plot .busy { stroke: #bf5a00; fill: none; }
    .plot .dot.idle { fill: #1f6feb; } .plot .dot.busy { fill: #bf5a00; }
    .plot .course { stroke: #8c959f; stroke-width: 1.5; fill: none; }
    .plot .mark { stroke-width: 2; }
    .plot .published { fill: #1f6feb; stroke: #1f6feb; } .plot .unchanged { fill: #ffffff; stroke: #1f6feb; }
    .plot .refused { fill: #bf5a00; stroke: #bf5a00; } .plot .failed { fill: none; stroke: #d1242f; stroke-width: 2.5; }
    .plot .otherwise { fill: #8c959f; stroke: #8c959f; }
    .plot .background { fill: #ffffff; }
    @media (prefers-color-scheme: dark) {
      .plot text { fill: #f0f6fc; }
      .plot .small, .plot .axis { fill: #9198a1; }
      .plot .small { stroke: #0d1117; }
      .plot .grid { stroke: #3d444d; }
      .plot .medref { fill: #4493f8; } .plot .limit { fill: #f0883e; } .plot .other { fill: #6e7681; }
      .plot .idle { stroke: #4493f8; } .plot .busy { stroke: #f0883e; }
      .plot .dot.idle { fill: #4493f8; } .plot .dot.busy { fill: #f0883e; }
      .plot .course { stroke: #6e7681; }
      .plot .published { fill: #4493f8; stroke: #4493f8; } .plot .unchanged { fill: #0d1117; stroke: #4493f8; }
      .plot .refused { fill: #f0883e; stroke: #f0883e; } .plot .failed { stroke: #ff7b72; }
      .plot .otherwise { fill: #6e7681; stroke: #6e7681; }
      .plot .background { fill: #0d1117; }
    }`;

/** A plot as SVG text. @param parts SVG text that is right as it is */
export function svgFigure(frame: PlotFrame, parts: readonly string[]): string {
  const { width, height, title, description, name, hasOwnStyle } = frame;
  const [titleId, descriptionId] = ['title', 'description'].map((it) => (name ? `${name}-${it}` : it));
  const style = hasOwnStyle ? `\n  <style>${plotStyle}\n  </style>` : '';
  return `<svg xmlns="http://www.w3.org/2000/svg" class="plot" viewBox="0 0 ${width} ${height}" width="${width}" height="${height}" role="img" aria-labelledby="${titleId} ${descriptionId}">
  <title id="${titleId}">${escapedText(title)}</title>
  <desc id="${descriptionId}">${escapedText(description)}</desc>${style}
  <rect class="background" width="${width}" height="${height}" rx="6"/>
  <text class="title" x="16" y="28">${escapedText(title)}</text>${parts.join('')}
</svg>
`;
}

/** A number as plots show it: whole from ten on, else with two digits. */
export function shownNumber(value: number): string {
  return value >= 10 ? Math.round(value).toLocaleString('en') : String(Number(value.toPrecision(2)));
}

/** A coordinate, with one decimal. */
export function coordinate(value: number): string {
  return String(Math.round(value * 10) / 10);
}

/** Text as it stands between the tags of SVG. */
export function escapedText(text: string): string {
  return text.replace(/&/g, '&amp;').replace(/</g, '&lt;').replace(/>/g, '&gt;');
}
