// In: --quick, --rounds N, --only GROUP. Out: everything measured that the README and docs/PERFORMANCE.md say of speed and
// memory: its tables on stdout, and, where it was measured in full, in the section of the page that is the group's own. This
// file lists the groups of rows.

import { existsSync } from 'node:fs';
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { type BenchRun, benchRun } from './bench-run.ts';
import { measureImport } from './import-speed.ts';
import { measureLatency } from './latency.ts';
import { wrkIsThere } from './load.ts';
import { describeMachine } from './machine.ts';
import { ArgumentError, type BenchOptions, type GroupName, readOptions } from './options.ts';
import { sectionsOf } from './page-sections.ts';
import { groupSection, performancePage, resultText } from './performance-page.ts';
import { project, realProducts } from './project.ts';
import { measureMemory } from './redis-memory.ts';
import type { Comparison, GroupResult } from './results.ts';
import { measureScale } from './scale.ts';
import { measureServing } from './serving.ts';
import { measureSize } from './size.ts';
import { measureWalk } from './walk.ts';
import { measureWorkers } from './workers.ts';
import { Workspace } from './workspace.ts';

/** A group of rows, and the section of the page that is its own. */
interface Group {
  readonly heading: string;
  /** What hardly varies, or takes very long, is measured once. */
  readonly isOnce?: boolean;
  measure(run: BenchRun): Promise<GroupResult>;
}

/** In the order of the page. */
const groups: Readonly<Record<GroupName, Group>> = {
  serving: { heading: 'Serving the real list', measure: measureServing },
  workers: { heading: 'Two workers', measure: measureWorkers },
  scale: { heading: 'The far end of a large list', measure: measureScale },
  walk: { heading: 'Reading a whole list', measure: measureWalk },
  latency: { heading: 'Latency at a steady rate', measure: measureLatency },
  import: { heading: 'Import', measure: measureImport },
  memory: { heading: 'Memory of the real list', isOnce: true, measure: measureMemory },
  size: { heading: 'From one million to ten million records', isOnce: true, measure: measureSize },
};

const docs = join(project, 'docs');
const pageName = 'PERFORMANCE.md';
const exitCodes = { done: 0, failed: 1, usage: 2, interrupted: 130 };

/** Something without which nothing can be measured is not here. */
class MissingError extends Error {}

process.exitCode = await main(process.argv.slice(2));
// What was under way when the bench was interrupted need not come to its end.
if (process.exitCode === exitCodes.interrupted) process.exit();

async function main(args: readonly string[]): Promise<number> {
  try {
    const options = readOptions(args);
    demandWhatItNeeds();
    return await measureAndTell(options);
  } catch (error) {
    process.stderr.write(`${(error as Error).message}\n`);
    return error instanceof ArgumentError || error instanceof MissingError
      ? exitCodes.usage
      : exitCodes.failed;
  }
}

function demandWhatItNeeds(): void {
  if (!wrkIsThere())
    throw new MissingError('bench needs wrk on the PATH: apt-get install wrk, or brew install wrk.');
  if (!existsSync(realProducts)) {
    throw new MissingError('bench needs the real list, shared/data/products.json.gz beside the project.');
  }
}

async function measureAndTell(options: BenchOptions): Promise<number> {
  const workspace = await Workspace.open();
  const interrupted = new Error('bench was interrupted.');
  for (const name of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const)
    process.on(name, () => workspace.abort(interrupted));
  try {
    const measured = measureAll(benchRun(workspace, options), options);
    const failed = await Promise.race([measured, workspace.aborted()]);
    for (const comparison of failed) process.stderr.write(`${sentence(comparison)}\n`);
    return failed.length > 0 ? exitCodes.failed : exitCodes.done;
  } catch (error) {
    if (error !== interrupted) throw error;
    process.stderr.write(`${interrupted.message}\n`);
    return exitCodes.interrupted;
  } finally {
    await workspace.close();
  }
}

/** Measures the groups, and tells of each as soon as it is measured. @returns the rows that failed */
async function measureAll(run: BenchRun, options: BenchOptions): Promise<Comparison[]> {
  const failed: Comparison[] = [];
  for (const name of options.groups) {
    const rounds = roundsOf(name, run);
    run.say(`${name}: ${rounds} ${rounds === 1 ? 'round' : 'rounds'}`);
    const result = await groups[name].measure(run).catch((error: Error) => failedGroup(name, error));
    run.workspace.throwIfAborted(); // What an interruption broke did not fail.
    process.stdout.write(`${resultText(result)}\n`);
    if (!options.quick) await writeSection(run, name, result);
    failed.push(...result.comparisons.filter(({ outcome }) => outcome.state === 'failed'));
  }
  if (options.quick) run.say('that was --quick: it works, and its figures mean nothing');
  return failed;
}

function roundsOf(name: GroupName, run: BenchRun): number {
  return groups[name].isOnce ? 1 : run.rounds;
}

/** What a group could not even begin to measure costs the others nothing. */
function failedGroup(name: GroupName, { message: reason }: Error): GroupResult {
  const outcome = { state: 'failed', reason } as const;
  return {
    comparisons: [{ subject: `all rows of ${name}`, against: '–', unit: 'times', target: null, outcome }],
  };
}

/** Puts the section of a group into the page that is there. */
async function writeSection(run: BenchRun, name: GroupName, result: GroupResult): Promise<void> {
  const { heading } = groups[name];
  const date = new Date().toISOString().slice(0, 10);
  const rounds = roundsOf(name, run);
  const { text, plots } = groupSection({ name, heading, machine: describeMachine(), date, rounds, result });
  const texts = sectionsOf(await readFile(join(docs, pageName), 'utf8')).set(heading, text);
  const inOrder = Object.values(groups).flatMap((group) => texts.get(group.heading) ?? []);
  for (const [file, content] of [...plots, [pageName, performancePage(inOrder, run.sizes.load)] as const])
    await writeFile(join(docs, file), content);
  run.say(`wrote the section "${heading}" of docs/${pageName}`);
}

function sentence({ subject, against, outcome }: Comparison): string {
  return `bench: failed: ${subject} against ${against}: ${outcome.state === 'failed' ? outcome.reason : ''}`;
}
