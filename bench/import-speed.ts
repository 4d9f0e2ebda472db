// The row group `import`: how fast a generated list is imported, against its parser alone, its writes alone, a PostgreSQL and
// a plain script, and how much memory that takes for a list ten times as long. In: a run. Out: its rows.

import { rm } from 'node:fs/promises';
import { setTimeout as sleep } from 'node:timers/promises';
import type { BenchRun } from './bench-run.ts';
import { generatedProducts, type ListFile, writeGeneratedList, writeLines } from './generated-list.ts';
import { startImport } from './medref.ts';
import { postgresPrograms, startPostgres } from './peers/postgres.ts';
import { importIntoPostgres } from './peers/postgres-import.ts';
import { peakMemoryUntil, startedCpuMicros } from './process-usage.ts';
import { builtProgram } from './project.ts';
import { writeCommands } from './redis-pipe.ts';
import type { Comparison, GroupResult, Outcome, PlainFigure } from './results.ts';
import { type ContestResult, inRounds } from './rounds.ts';
import { median } from './statistics.ts';

/** One pass over the list. */
interface Pass {
  /** Records/s of the work itself. */
  readonly recordsPerSecond: number;
  /** Records/s of the process from its start to its end. */
  readonly wallRecordsPerSecond: number;
  /** CPU time in µs of all processes that took part, the store too; `null` where the system does not tell. */
  readonly cpuMicros: number | null;
  /** In bytes, of an import. */
  readonly peakMemory: number | null;
}

const megabyte = 1_000_000;
/** A session of PostgreSQL ends a little after its client has gone; only then its CPU time is its server's. */
const reapMs = 200;

/** Measures imports of generated lists. */
export async function measureImport(run: BenchRun): Promise<GroupResult> {
  const { workspace, sizes, rounds } = run;
  run.say(`generating ${sizes.importRecords} products`);
  const list = await writeGeneratedList(workspace, sizes.importRecords);
  const commands = workspace.path('commands');
  await writeCommands(commands, generatedProducts(list.count));
  const importOnce = () => importList(run, list);
  const postgres = await postgresImport(run, list);
  const [stream, loop, pipe, plain, database] = (await inRounds(
    [
      { title: 'import against stream-json', subject: importOnce, against: () => parse(run, 'stream', list) },
      {
        title: 'import against its functions alone',
        subject: importOnce,
        against: () => parse(run, 'loop', list),
      },
      {
        title: 'import against redis-cli --pipe',
        subject: importOnce,
        against: () => pipeIn(run, commands, list),
      },
      {
        title: 'import against a plain script',
        subject: importOnce,
        against: () => plainImport(run, list),
      },
      ...('leftOut' in postgres
        ? []
        : [{ title: 'import against PostgreSQL', subject: importOnce, against: postgres.importOnce }]),
    ],
    rounds,
    (title, round) => run.say(`round ${round + 1} of ${rounds}: ${title}`),
  )) as [Result, Result, Result, Result, Result | undefined];
  if (!('leftOut' in postgres)) await postgres.stop();
  await list.remove();
  const passes = [stream, loop, pipe, plain, ...(database ? [database] : [])].flatMap(({ samples }) =>
    samples.map(({ subject }) => subject),
  );
  const large = await importLarge(run);
  return {
    comparisons: [
      speed(stream, {
        against: 'stream-json 3 alone, values not streamed, records assembled',
        target: { atLeast: 0.6 },
      }),
      speed(loop, { against: 'stream-json 3 by its functions, without streams', target: null }),
      speed(pipe, { against: 'redis-cli --pipe of the same records', target: null }),
      instead(plain, 'a plain script: JSON.parse, joi, HSET by pipelines'),
      'leftOut' in postgres
        ? {
            ...{ subject: wholeImport, against: postgresName, unit: 'times', target: { atLeast: 1 } },
            outcome: { state: 'left out', reason: postgres.leftOut },
          }
        : instead(database as Result, postgresName),
      ...memoryComparisons(run, passes, large),
    ],
    figures: figures(run, { passes, stream, loop, pipe, plain, database, large }),
  };
}

type Result = ContestResult<Pass>;
const wholeImport = 'medref import, the whole process';
const postgresName = 'PostgreSQL: COPY, the same rules in SQL, the same indexes, swap';

/** One import into a Redis that is empty. */
async function importList({ workspace }: BenchRun, list: ListFile): Promise<Pass> {
  const redis = await workspace.startRedis();
  const cpu = cpuClock();
  const startedAt = performance.now();
  const store = { redisUrl: redis.url, keyPrefix: 'medref' };
  const { child, report } = await startImport(workspace, store, list.path);
  const memory = peakMemoryUntil(child.pid, report);
  const { read, rejected, durationMs } = await report;
  const wallMs = performance.now() - startedAt;
  const cpuMicros = cpu();
  await redis.stop();
  if (read !== list.count || rejected > 0)
    throw new Error(`the import read ${read} records of ${list.count} and rejected ${rejected}`);
  return {
    recordsPerSecond: read / (durationMs / 1000),
    wallRecordsPerSecond: read / (wallMs / 1000),
    cpuMicros,
    peakMemory: await memory,
  };
}

async function parse({ workspace }: BenchRun, way: 'stream' | 'loop', list: ListFile): Promise<Pass> {
  const startedAt = performance.now();
  const stdout = await workspace.run(process.execPath, [builtProgram('bare-parser.js'), way, list.path]);
  const wallMs = performance.now() - startedAt;
  const { records, durationMs } = JSON.parse(stdout) as { records: number; durationMs: number };
  if (records !== list.count) throw new Error(`stream-json found ${records} records, not ${list.count}`);
  return passOf(records, durationMs, wallMs);
}

async function pipeIn({ workspace }: BenchRun, commands: string, list: ListFile): Promise<Pass> {
  const redis = await workspace.startRedis();
  const startedAt = performance.now();
  const script = 'exec redis-cli -p "$1" --pipe < "$2"';
  const stdout = await workspace.run('sh', ['-c', script, 'pipe', String(redis.port), commands]);
  const wallMs = performance.now() - startedAt;
  await redis.stop();
  if (!stdout.includes('errors: 0')) throw new Error(`redis-cli --pipe said: ${stdout.trim()}`);
  return passOf(list.count, wallMs, wallMs);
}

/** What a user would write in an afternoon; it has no versions, no search and no pages that are compressed before. */
async function plainImport({ workspace }: BenchRun, list: ListFile): Promise<Pass> {
  const redis = await workspace.startRedis();
  const cpu = cpuClock();
  const startedAt = performance.now();
  const program = builtProgram('peers/plain-import.js');
  const stdout = await workspace.run(process.execPath, [program, redis.url, list.path]);
  const wallMs = performance.now() - startedAt;
  const cpuMicros = cpu();
  await redis.stop();
  const { records, durationMs } = JSON.parse(stdout) as { records: number; durationMs: number };
  if (records !== list.count) throw new Error(`the script wrote ${records} records, not ${list.count}`);
  return passOf(records, durationMs, wallMs, cpuMicros);
}

interface PostgresImport {
  importOnce(): Promise<Pass>;
  stop(): Promise<void>;
}

/** One server for all rounds; the list lies before it as lines, which COPY takes. */
async function postgresImport(
  { workspace }: BenchRun,
  list: ListFile,
): Promise<PostgresImport | { leftOut: string }> {
  const programs = postgresPrograms();
  if (programs === undefined) return { leftOut: 'PostgreSQL is not on this machine' };
  const { child, socketFolder } = await startPostgres(workspace, programs);
  const lines = workspace.path('products.ndjson');
  await writeLines(lines, generatedProducts(list.count));
  return {
    async importOnce() {
      const cpu = cpuClock();
      const startedAt = performance.now();
      const records = await importIntoPostgres(socketFolder, lines);
      const wallMs = performance.now() - startedAt;
      if (records !== list.count) throw new Error(`PostgreSQL has ${records} records, not ${list.count}`);
      await sleep(reapMs);
      return passOf(records, wallMs, wallMs, cpu());
    },
    async stop() {
      await child.stop();
      await rm(lines, { force: true });
    },
  };
}

/** CPU time of everything that the bench has started, from now on. */
function cpuClock(): () => number | null {
  const before = startedCpuMicros();
  return () => {
    const after = startedCpuMicros();
    return before === null || after === null ? null : after - before;
  };
}

function passOf(records: number, durationMs: number, wallMs: number, cpuMicros: number | null = null): Pass {
  return {
    cpuMicros,
    recordsPerSecond: records / (durationMs / 1000),
    wallRecordsPerSecond: records / (wallMs / 1000),
    peakMemory: null,
  };
}

/** Once: a peak hardly varies, and two million records take their time. */
async function importLarge(run: BenchRun): Promise<Pass | Error> {
  run.say(`generating and importing ${run.sizes.largeImportRecords} products`);
  const list = await writeGeneratedList(run.workspace, run.sizes.largeImportRecords);
  try {
    return await importList(run, list);
  } catch (error) {
    return error as Error;
  } finally {
    await list.remove();
  }
}

// ---- results

function speed(
  { samples, failure }: ContestResult<Pass>,
  { against, target }: Pick<Comparison, 'against' | 'target'>,
): Comparison {
  const values = samples.map((it) => it.subject.recordsPerSecond / it.against.recordsPerSecond);
  const outcome: Outcome =
    failure === null ? { state: 'measured', values } : { state: 'failed', reason: failure };
  return { subject: 'medref import', against, unit: 'times', target, outcome };
}

/** The whole import against what a user would take instead: records/s by the clock, and by CPU time of all processes. */
function instead({ samples, failure }: Result, against: string): Comparison {
  const values = samples.map((it) => it.subject.wallRecordsPerSecond / it.against.wallRecordsPerSecond);
  const byCpuTime = samples.flatMap(({ subject, against: other }) =>
    subject.cpuMicros === null || other.cpuMicros === null ? [] : [other.cpuMicros / subject.cpuMicros],
  );
  const outcome: Outcome =
    failure === null ? { state: 'measured', values } : { state: 'failed', reason: failure };
  const target = { atLeast: 1 };
  return { subject: wholeImport, against, unit: 'times', target, outcome, byCpuTime };
}

function memoryComparisons(run: BenchRun, passes: readonly Pass[], large: Pass | Error): Comparison[] {
  const { importRecords, largeImportRecords } = run.sizes;
  const [few, many] = [importRecords, largeImportRecords].map((it) => it.toLocaleString('en'));
  const small = passes.map((it) => it.peakMemory).filter((it) => it !== null);
  const subject = `medref import: peak memory for ${many} records`;
  const outcome = (values: (peak: number) => number[]): Outcome => {
    if (large instanceof Error) return { state: 'failed', reason: large.message };
    if (large.peakMemory === null || small.length === 0)
      return { state: 'left out', reason: 'this system does not tell the memory of a process' };
    return { state: 'measured', values: values(large.peakMemory) };
  };
  return [
    {
      ...{ subject, against: `the same for ${few}`, unit: 'times', target: { atMost: 1.15 } },
      outcome: outcome((peak) => [peak / median(small)]),
    },
    {
      ...{ subject, against: 'a bound', unit: 'MB', target: { atMost: 220 } },
      outcome: outcome((peak) => [peak / megabyte]),
    },
  ];
}

function figures(
  run: BenchRun,
  found: {
    passes: readonly Pass[];
    stream: ContestResult<Pass>;
    loop: ContestResult<Pass>;
    pipe: ContestResult<Pass>;
    plain: ContestResult<Pass>;
    database: ContestResult<Pass> | undefined;
    large: Pass | Error;
  },
): PlainFigure[] {
  const { importRecords, largeImportRecords } = run.sizes;
  const few = importRecords.toLocaleString('en');
  const many = largeImportRecords.toLocaleString('en');
  const large = found.large instanceof Error ? [] : [found.large];
  const rate = (name: string, values: readonly number[]) => measured(name, 'records/s', values);
  const memory = (name: string, passes: readonly Pass[]) =>
    measured(
      name,
      'MB',
      passes.flatMap(({ peakMemory: peak }) => (peak === null ? [] : [peak / megabyte])),
    );
  const own = (passes: readonly Pass[]) => passes.map((it) => it.recordsPerSecond);
  const wall = (passes: readonly Pass[]) => passes.map((it) => it.wallRecordsPerSecond);
  const cpu = (name: string, passes: readonly Pass[]) =>
    measured(
      name,
      's',
      passes.flatMap(({ cpuMicros: micros }) => (micros === null ? [] : [micros / 1e6])),
    );
  const others = ({ samples }: ContestResult<Pass>) => samples.map(({ against }) => against);
  const database = found.database ? others(found.database) : [];
  return [
    ...rate(`medref import of ${few}, the import itself`, own(found.passes)),
    ...rate(`medref import of ${few}, the whole process`, wall(found.passes)),
    ...rate(`medref import of ${many}, the import itself`, own(large)),
    ...rate('stream-json alone', own(others(found.stream))),
    ...rate('stream-json alone, the whole process', wall(others(found.stream))),
    ...rate('stream-json by its functions', own(others(found.loop))),
    ...rate('redis-cli --pipe', own(others(found.pipe))),
    ...rate('a plain script', wall(others(found.plain))),
    ...rate('PostgreSQL', wall(database)),
    ...cpu(`medref import of ${few}, CPU time of all processes`, found.passes),
    ...cpu('a plain script, CPU time of all processes', others(found.plain)),
    ...cpu('PostgreSQL, CPU time of all processes', database),
    ...memory(`medref import of ${few}, peak memory`, found.passes),
    ...memory(`medref import of ${many}, peak memory`, large),
  ];
}

function measured(name: string, unit: string, values: readonly number[]): PlainFigure[] {
  return values.length === 0 ? [] : [{ name, unit, outcome: { state: 'measured', values } }];
}
