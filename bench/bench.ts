// npm run bench: measures speed and memory, and writes docs/PERFORMANCE.md. Arguments: --only GROUP[,GROUP], --rounds N, --quick.

import { existsSync, readFileSync } from 'node:fs';
import { readFile, writeFile } from 'node:fs/promises';
import { cpus, platform, release, totalmem } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { advisedFsync } from '../demo/private-redis.ts';
import { measureImport, measureLatency, measureMemory, measureSize } from './imports.ts';
import { wrkIsThere } from './load.ts';
import { type Run, type Table, tableText } from './measure.ts';
import { project, realProducts } from './project.ts';
import { measureServing, measureShare, measureWorkers } from './serving.ts';
import { Workspace } from './workspace.ts';

interface Group {
  readonly heading: string;
  measure(run: Run): Promise<Table[]>;
}

const groups: Readonly<Record<string, Group>> = {
  share: { heading: 'CPU time of a request', measure: measureShare },
  serving: { heading: 'Requests per second', measure: measureServing },
  workers: { heading: 'Several processes', measure: measureWorkers },
  latency: { heading: 'Latency during an import', measure: measureLatency },
  import: { heading: 'Import', measure: measureImport },
  memory: { heading: 'Memory of Redis', measure: measureMemory },
  size: { heading: 'Long lists', measure: measureSize },
};

const page = join(project, 'docs', 'PERFORMANCE.md');
const usage = `Usage: npm run bench -- [--only ${Object.keys(groups).join('|')}] [--rounds 1 to 99] [--quick]`;

/** Runs the bench. @returns the exit code: 0 done, 1 failed, 2 wrong usage */
async function main(args: readonly string[]): Promise<number> {
  const options = readOptions(args);
  if (typeof options === 'string') {
    process.stderr.write(`${options}\n`);
    return 2;
  }
  const workspace = await Workspace.open();
  for (const signal of ['SIGINT', 'SIGTERM'] as const)
    process.on(signal, () => workspace.abort(new Error('The bench was interrupted.')));
  const say = (progress: string) => void process.stderr.write(`bench: ${progress}\n`);
  const run: Run = { workspace, rounds: options.rounds, quick: options.quick, say };
  try {
    for (const name of options.only) {
      say(`${name}, ${options.rounds} rounds`);
      const { heading, measure } = groups[name] as Group;
      const text = (await measure(run)).map(tableText).join('\n');
      process.stdout.write(`${text}\n`);
      if (!options.quick) await writeSection(heading, `${measuredOn(options.rounds)}\n\n${text}`);
    }
    return 0;
  } catch (error) {
    process.stderr.write(`bench: ${(error as Error).message}\n`);
    return 1;
  } finally {
    await workspace.close();
  }
}

/** @returns the parsed options, or a sentence about wrong ones */
function readOptions(args: readonly string[]): { only: string[]; rounds: number; quick: boolean } | string {
  try {
    const { values } = parseArgs({
      args: [...args],
      options: {
        only: { type: 'string', multiple: true },
        rounds: { type: 'string', default: '5' },
        quick: { type: 'boolean', default: false },
      },
    });
    const only = values.only?.flatMap((names) => names.split(',')) ?? Object.keys(groups);
    const unknown = only.find((name) => !Object.hasOwn(groups, name));
    if (unknown !== undefined) return `Unknown group ${JSON.stringify(unknown)}. ${usage}`;
    if (!/^[1-9][0-9]?$/.test(values.rounds)) return `Wrong number of rounds. ${usage}`;
    if (!wrkIsThere()) return 'The bench needs wrk and curl. Install them: apt-get install wrk curl.';
    if (!existsSync(realProducts)) return 'The bench needs the real list in ../shared/data.';
    return { only, rounds: values.quick ? 1 : Number(values.rounds), quick: values.quick };
  } catch (error) {
    return `${(error as Error).message} ${usage}`;
  }
}

/** Replaces one section of the page. The sections that are written by hand come first. */
async function writeSection(heading: string, text: string): Promise<void> {
  const [start = '', ...sections] = (await readFile(page, 'utf8')).split(/^## /m);
  const texts = new Map(sections.map((section) => [section.slice(0, section.indexOf('\n')), section]));
  texts.set(heading, `${heading}\n\n${text}\n`);
  const measured = Object.values(groups).map((group) => group.heading);
  const written = [...texts.keys()].filter((it) => !measured.includes(it));
  const inOrder = [...written, ...measured].flatMap((it) => texts.get(it) ?? []);
  await writeFile(
    page,
    [start, ...inOrder]
      .map((section) => section.trimEnd().concat('\n\n'))
      .join('## ')
      .trimEnd()
      .concat('\n'),
  );
}

function measuredOn(rounds: number): string {
  const { version } = JSON.parse(readFileSync(join(project, 'package.json'), 'utf8')) as { version: string };
  const machine = `${cpus()[0]?.model.trim()}, ${cpus().length} cores, ${Math.round(totalmem() / 2 ** 30)} GiB, ${platform()} ${release()}`;
  return `Measured on ${new Date().toISOString().slice(0, 10)}: median of ${rounds} rounds. medref ${version}, Node ${process.versions.node}, Redis with \`appendfsync ${advisedFsync()}\` unless a row differs. Machine: ${machine}.`;
}

process.exitCode = await main(process.argv.slice(2));
