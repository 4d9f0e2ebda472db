// Tests npm run bench: wrong arguments, and a quick run of a group. Its numbers are never tested.

import { spawnSync } from 'node:child_process';
import { expect } from 'chai';
import { median, percentile, shown } from '../../bench/measure.ts';
import { cpuMicros } from '../../bench/process-usage.ts';
import { project, realProducts } from '../../bench/project.ts';
import { kinds, pagePaths, readProducts, requestsOf } from '../../bench/requests.ts';

describe('npm run bench', function () {
  this.timeout(120_000);
  const bench = (...args: string[]) =>
    spawnSync(process.execPath, ['--import', 'tsx', 'bench/bench.ts', ...args], {
      cwd: project,
      encoding: 'utf8',
    });

  for (const [what, args] of Object.entries({
    'an unknown group': ['--only', 'share,speed'],
    'a wrong number of rounds': ['--rounds', '0'],
    'an unknown option': ['--fast'],
  })) {
    it(`exits with 2 for ${what} and names the accepted values`, () => {
      const { status, stderr } = bench(...args);
      expect([status, /Usage: npm run bench -- \[--only share\|/.test(stderr)], stderr).to.deep.equal([
        2,
        true,
      ]);
    });
  }

  it('measures an import', () => {
    const { status, stdout, stderr } = bench('--quick', '--only', 'memory');
    if (/needs wrk/.test(stderr)) return;
    expect(status, stderr).to.equal(0);
    expect(stdout).to.match(/\| JSON, MB \| Redis, MB \| Times the JSON \|\n\|---\|---\|---\|\n\| \d/);
  });

  it('requests every record, page and barcode', () => {
    const products = readProducts(realProducts);
    const requests = requestsOf(products, { key: 'key', ratedKey: 'other' }, new Map());
    expect(Object.keys(requests)).to.have.members([...kinds]);
    expect(requests.record).to.have.length(products.length);
    expect(pagePaths(products.length, 200)).to.have.length(Math.floor(products.length / 200));
    for (const kind of kinds) {
      const key = kind === 'rated' ? 'other' : 'key';
      expect(requests[kind][0]?.headers, kind).to.include({ Authorization: `Bearer ${key}` });
    }
  });

  it('computes medians, percentiles and CPU time', () => {
    expect([median([3, 1, 2]), median([4, 1, 2, 3])]).to.deep.equal([2, 2.5]);
    expect([percentile([1, 2, 3, 4], 0.5), percentile([1, 2, 3, 4], 1)]).to.deep.equal([2, 4]);
    expect([shown(1234.5), shown(12.34), shown(1.234)]).to.deep.equal(['1,235', '12.3', '1.23']);
    if (process.platform === 'linux') expect(cpuMicros(process.pid)).to.be.above(0);
  });
});
