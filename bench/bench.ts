// In: --quick, --rounds N, --only GROUP. Out: everything measured that the README and docs/PERFORMANCE.md say of speed and
// memory; that page where all was measured in full, else its tables on stdout. This file lists the groups of rows.

import { existsSync } from 'node:fs';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { type BenchRun, benchRun } from './bench-run.ts';
import { measureImport } from './import-speed.ts';
import { measureLatency } from './latency.ts';
import { wrkIsThere } from './load.ts';
import { describeMachine } from './machine.ts';
import { ArgumentError, type BenchOptions, type GroupName, groupNames, readOptions } from './options.ts';
import { performancePage, resultText } from './performance-page.ts';
import { project, realProducts } from './project.ts';
import { measureMemory } from './redis-memory.ts';
import type { Comparison, GroupResult } from './results.ts';
import { measureScale } from './scale.ts';
import { measureServing } from './serving.ts';
import { measureShare } from './share.ts';
import { measureWalk } from './walk.ts';
import { measureWorkers } from './workers.ts';
import { Workspace } from './workspace.ts';

const groups: Readonly<Record<GroupName, (run: BenchRun) => Promise<GroupResult>>> = {
  serving: measureServing,
  share: measureShare,
  workers: measureWorkers,
  scale: measureScale,
  walk: measureWalk,
  latency: measureLatency,
  import: measureImport,
  memory: measureMemory,
};

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
    const run = benchRun(workspace, options);
    const result = await Promise.race([measure(run, options), workspace.aborted()]);
    await tell(run, options, result);
    const failed = result.comparisons.filter(({ outcome }) => outcome.state === 'failed');
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

async function measure(run: BenchRun, options: BenchOptions): Promise<Required<GroupResult>> {
  const results: GroupResult[] = [];
  for (const name of options.groups) {
    run.say(`${name}: ${run.rounds} ${run.rounds === 1 ? 'round' : 'rounds'}`);
    results.push(await groups[name](run).catch((error: Error) => failedGroup(name, error)));
  }
  return {
    comparisons: results.flatMap((it) => it.comparisons),
    serving: results.flatMap((it) => it.serving ?? []),
    share: results.flatMap((it) => it.share ?? []),
    latency: results.flatMap((it) => it.latency ?? []),
    figures: results.flatMap((it) => it.figures ?? []),
  };
}

/** What a group could not even begin to measure costs the others nothing. */
function failedGroup(name: GroupName, { message: reason }: Error): GroupResult {
  const outcome = { state: 'failed', reason } as const;
  return {
    comparisons: [{ subject: `all rows of ${name}`, against: '–', unit: 'times', target: null, outcome }],
  };
}

/** Writes the page where all of it was measured in full; prints the tables otherwise. */
async function tell(run: BenchRun, options: BenchOptions, result: Required<GroupResult>): Promise<void> {
  const isWhole = !options.quick && options.groups.length === groupNames.length;
  process.stdout.write(resultText(result));
  if (options.quick) return run.say('that was --quick: it works, and its figures mean nothing');
  if (!isWhole) return;
  const { seconds, warmUpSeconds } = run.sizes.load;
  const date = new Date().toISOString().slice(0, 10);
  const { rounds } = options;
  const page = performancePage({ machine: describeMachine(), date, rounds, seconds, warmUpSeconds, result });
  for (const [name, text] of page) await writeFile(join(project, 'docs', name), text);
  run.say(`wrote ${[...page.keys()].map((name) => `docs/${name}`).join(', ')}`);
}

function sentence({ subject, against, outcome }: Comparison): string {
  return `bench: failed: ${subject} against ${against}: ${outcome.state === 'failed' ? outcome.reason : ''}`;
}
