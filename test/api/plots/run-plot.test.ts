// Plots of runs: their axis, their marks, their words.

import { expect } from 'chai';
import { type PlottedRun, runMark, runPlot } from '../../../api/plots/run-plot.ts';

const words = {
  name: 'n',
  title: 'Records <read>',
  description: 'From 1 & up',
  ends: ['first', 'last'] as const,
};
const run = (value: number | null, kind: PlottedRun['kind'] = 'published'): PlottedRun => ({
  kind,
  value,
  label: `${value}`,
});
const ticksOf = (svg: string) =>
  [...svg.matchAll(/text-anchor="end">([\d.,]+)<\/text>/g)].map(([, tick]) => tick);

describe('a plot of runs', () => {
  it('has an axis from 0 in round steps, over the greatest figure', () => {
    for (const [most, ticks] of [
      [0, ['0', '0.5', '1']],
      [0.07, ['0', '0.05', '0.1']],
      [3, ['0', '1', '2', '3']],
      [300, ['0', '100', '200', '300']],
      [302, ['0', '200', '400']],
      [28_395, ['0', '10,000', '20,000', '30,000']],
    ] as const)
      expect(ticksOf(runPlot([run(1 * most)], words)), String(most)).to.deep.equal(ticks);
  });

  it('has a mark for each run that has the figure, of another shape for each end', () => {
    const kinds = ['published', 'refused', 'failed', 'otherwise'] as const;
    const svg = runPlot([...kinds.map((kind, n) => run(n, kind)), run(null)], words);
    expect(svg.match(/<g class="mark \w+">/g)).to.have.length(4);
    expect(
      new Set(
        kinds.map(
          (kind) => /<(circle|path|rect)[^>]*?( [rd]| width)="[^"]*?(?=[lm"]|$)/.exec(runMark(kind))?.[0],
        ),
      ).size,
    ).to.equal(4);
    expect(svg).not.to.match(/NaN|Infinity|undefined|null"/);
    expect(runPlot([], words)).not.to.match(/NaN|Infinity|undefined/);
  });

  it('is told in words, and names them apart from those of other plots', () => {
    const svg = runPlot([run(1), run(2)], words);
    expect(svg).to.include('aria-labelledby="n-title n-description"');
    expect(svg).to.include('<title id="n-title">Records &lt;read&gt;</title>');
    expect(svg).to.include('<desc id="n-description">From 1 &amp; up</desc>').and.not.include('<style>');
  });
});
