// Tests the files for Prometheus and Grafana: with promtool, and against the existing metrics.

import { execFile } from 'node:child_process';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { expect } from 'chai';
import { parse, stringify } from 'yaml';
import { createMetrics } from '../../api/admin/metrics.ts';
import { onPath } from '../../bench/installed.ts';
import { read, root } from '../support/project-files.ts';

const run = promisify(execFile);
const promtool = onPath('promtool');
const ifThere = promtool === undefined ? it.skip : it;
const leftOut = promtool === undefined ? ' (left out: promtool is not installed)' : '';

interface Rules {
  groups: { rules: { alert: string; expr: string }[] }[];
}

interface RuleTests {
  tests: { alert_rule_test: { alertname: string; exp_alerts: unknown[] }[] }[];
}

interface Panel {
  id: number;
  type: string;
  title: string;
  targets?: { expr: string }[];
}

describe('the files for Prometheus and Grafana', function () {
  // promtool takes 9 s on an idle machine.
  this.timeout(120_000);
  const alerts = (parse(read('deploy/prometheus/alerts.yml')) as Rules).groups.flatMap(({ rules }) => rules);
  const { panels } = JSON.parse(read('deploy/grafana/medref.json')) as { panels: Panel[] };
  const shown = panels.flatMap(({ targets = [] }) => targets.map(({ expr }) => expr));
  const metrics = createMetrics();
  metrics.addWaiting(() => 0);
  metrics.addCollections(async () => ({ states: [], importers: [], clients: [] }));

  /** The series that each metric has. */
  const series = metrics.registry.getMetricsAsArray().flatMap((metric) => {
    const isHistogram = String((metric as unknown as { type: string }).type) === 'histogram';
    return isHistogram ? ['_bucket', '_count', '_sum'].map((it) => metric.name + it) : [metric.name];
  });
  const named = (expression: string) =>
    expression.match(/\b(?:medref|nodejs|process)_\w+(?=[{[ )]|$)/gm) ?? [];

  it('use only existing metrics', () => {
    const names = [...alerts.map(({ expr }) => expr), ...shown].flatMap(named);
    expect(names.length).to.be.above(40);
    expect(names.filter((name) => !series.includes(name))).to.deep.equal([]);
  });

  it('show every medref metric on the dashboard', () => {
    const own = metrics.registry.getMetricsAsArray().map(({ name }) => name);
    const names = shown.flatMap(named).map((name) => name.replace(/_(?:bucket|count|sum)$/, ''));
    expect(own.filter((name) => name.startsWith('medref_') && !names.includes(name))).to.deep.equal([]);
  });

  it('have a case for each alert in which it fires', () => {
    const cases = (parse(read('deploy/prometheus/alerts.test.yml')) as RuleTests).tests.flatMap(
      (it) => it.alert_rule_test,
    );
    for (const { alert } of alerts) {
      const its = cases.filter(({ alertname }) => alertname === alert);
      expect(
        its.some(({ exp_alerts: expected }) => expected.length > 0),
        alert,
      ).to.equal(true);
    }
  });

  ifThere(`has alerts that fire when they are due, and not else, by promtool${leftOut}`, async () => {
    const { stdout } = await run(promtool as string, [
      ...['test', 'rules', join(root, 'deploy/prometheus/alerts.test.yml')],
    ]);
    expect(stdout).to.include('SUCCESS').and.not.to.include('FAILED');
  });

  ifThere(`asks on the dashboard what Prometheus understands, by promtool${leftOut}`, async () => {
    const rules = shown.map((expr, n) => ({
      record: `panel:${n}`,
      expr: expr.replaceAll('$__rate_interval', '5m').replaceAll('$instance', '.*'),
    }));
    const folder = await mkdtemp(join(tmpdir(), 'medref-dashboard-'));
    try {
      const file = join(folder, 'rules.yml');
      await writeFile(file, stringify({ groups: [{ name: 'dashboard', rules }] }));
      const { stdout } = await run(promtool as string, ['check', 'rules', file]);
      expect(stdout).to.include(`${rules.length} rules found`);
    } finally {
      await rm(folder, { recursive: true, force: true });
    }
  });
});
