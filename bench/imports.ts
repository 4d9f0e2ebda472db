// The groups `import`, `memory`, `size` and `latency`: imports of lists, their cost, and the effect on readers.

import { setTimeout as sleep } from 'node:timers/promises';
import type { Fsync } from '../demo/private-redis.ts';
import { connectForWriting, type Redis } from '../shared/redis/connections.ts';
import { type ListFile, writeGeneratedList } from './generated-list.ts';
import { inRounds, percentile, type Run, shown, spread, type Table } from './measure.ts';
import { startImport, startService } from './medref.ts';
import { postgresPrograms, startPostgres } from './postgres.ts';
import { cpuMicros, peakMemoryUntil } from './process-usage.ts';
import { builtProgram, realProducts } from './project.ts';
import { pagePaths, readProducts } from './requests.ts';
import { steadyLoad } from './steady-load.ts';

/** One import, by medref or by the plain script. */
interface Pass {
  readonly recordsPerSecond: number;
  /** Of the importer and of the server that stores the list, in s. */
  readonly cpu: number;
  readonly storeCpu: number;
  /** Of the importer, in MB. */
  readonly peakMemory: number;
}

/**
 * Measures an import against a plain script (JSON.parse of the whole file, joi, HSET in pipelines) and, if it is installed,
 * PostgreSQL (the same rules and indexes, COPY, and a swap).
 */
export async function measureImport(run: Run): Promise<Table[]> {
  const list = await writeGeneratedList(run.workspace, run.quick ? 5_000 : 200_000);
  const sides: Record<string, () => Promise<Pass>> = {
    'medref import': () => importOnce(run, list),
    'a plain script': () => plainImport(run, list),
  };
  if (postgresPrograms()) sides['into PostgreSQL'] = () => postgresImport(run, list);
  const samples = await inRounds(run.rounds, sides);
  await list.remove();
  const text = `An import of ${list.count.toLocaleString('en')} generated products (${shown(list.bytes / 1e6)} MB) into an empty Redis with \`appendfsync everysec\`, by whole processes.`;
  return [passTable(text, samples)];
}

/** Measures how an import grows with the list, and its slowest commands. */
export async function measureSize(run: Run): Promise<Table[]> {
  const counts = run.quick ? [2_000, 4_000] : [100_000, 1_000_000];
  const found: Record<string, Pass[]> = {};
  const commands: Table['rows'][number][] = [];
  for (const count of counts) {
    const list = await writeGeneratedList(run.workspace, count);
    const name = `${count.toLocaleString('en')} records`;
    found[name] = [
      await importOnce(run, list, async (redis) => commands.push([name, ...(await slowCommands(redis))])),
    ];
    await list.remove();
  }
  return [
    passTable('Imports of lists of different lengths with `appendfsync everysec`, once each.', found),
    {
      text: 'Times of the Redis commands of these imports, from the slow log of Redis.',
      head: ['List', 'Over 1 ms', 'Over 2 ms', 'Slowest, ms', 'Its command'],
      rows: commands,
    },
  ];
}

/** Returns the cells of a row about the commands that took 1 ms or longer. */
async function slowCommands(redis: Redis): Promise<string[]> {
  // Each entry: id, time, duration in µs, command with arguments, address, name.
  const entries = (await redis.slowlog('GET', '-1')) as [number, number, number, string[]][];
  const slowest = entries.reduce((most, it) => (it[2] > most[2] ? it : most), [0, 0, 0, ['none']]);
  return [
    String(entries.length),
    String(entries.filter(([, , micros]) => micros > 2_000).length),
    shown(slowest[2] / 1_000),
    slowest[3][0] as string,
  ];
}

/** Measures the memory of Redis for the real list. */
export async function measureMemory(run: Run): Promise<Table[]> {
  const redis = await run.workspace.startRedis();
  const memory = async () =>
    Number(
      /used_memory:(\d+)/.exec(
        await run.workspace.run('redis-cli', ['-p', String(redis.port), 'INFO', 'memory']),
      )?.[1],
    );
  const empty = await memory();
  await (await startImport(run.workspace, redis.url, realProducts)).report;
  await sleep(1_000);
  const used = (await memory()) - empty;
  await redis.stop();
  const json = readProducts(realProducts).reduce((sum, it) => sum + Buffer.byteLength(JSON.stringify(it)), 0);
  return [
    {
      text: 'Memory of Redis for one version of the real list, with drugs and search index.',
      head: ['JSON, MB', 'Redis, MB', 'Times the JSON'],
      rows: [[shown(json / 1e6), shown(used / 1e6), shown(used / json)]],
    },
  ];
}

const perSecond = 500;
const shares = [0.5, 0.9, 0.99, 0.999] as const;

/** Measures the latency of pages at a steady rate, idle and during imports in which every record changes. */
export async function measureLatency(run: Run): Promise<Table[]> {
  const count = run.quick ? 5_000 : 200_000;
  const lists = [
    await writeGeneratedList(run.workspace, count, 0),
    await writeGeneratedList(run.workspace, count, 1),
  ];
  const rows: string[][] = [];
  for (const fsync of ['everysec', 'always'] satisfies Fsync[]) {
    const service = await startService(run.workspace, lists[0]?.path as string, { fsync });
    const headers = { Authorization: `Bearer ${service.key}`, 'Accept-Encoding': 'gzip' };
    const requests = pagePaths(count, 200).map((path) => ({ path, headers }));
    const load = { origin: service.origin, requests, perSecond };
    await steadyLoad(load, sleep(1_000));
    let imports = 0;
    const samples = await inRounds(run.rounds, {
      idle: async () => {
        await sleep(2_000);
        return steadyLoad(load, sleep(run.quick ? 1_000 : 10_000));
      },
      'during an import': async () => {
        imports += 1;
        const { path } = lists[imports % 2] as ListFile;
        return steadyLoad(load, (await startImport(run.workspace, service.redisUrl, path)).report);
      },
    });
    for (const [phase, its] of Object.entries(samples))
      rows.push([
        `${phase}, \`appendfsync ${fsync}\``,
        ...shares.map((share) => spread(its.map((it) => percentile(it, share)))),
      ]);
    await service.stop();
  }
  for (const list of lists) await list.remove();
  return [
    {
      text: `Latency in ms of pages of 200 at ${perSecond} requests a second, counted from when each request was due.`,
      head: ['Phase', ...shares.map((share) => `${share * 100} %`)],
      rows,
    },
  ];
}

function passTable(text: string, samples: Readonly<Record<string, readonly Pass[]>>): Table {
  return {
    text,
    head: ['What', 'Records/s', 'CPU, importer, s', 'CPU, server, s', 'Peak memory, MB'],
    rows: Object.entries(samples).map(([name, its]) => [
      name,
      spread(its.map((it) => it.recordsPerSecond)),
      spread(its.map((it) => it.cpu)),
      spread(its.map((it) => it.storeCpu)),
      spread(its.map((it) => it.peakMemory)),
    ]),
  };
}

/** @param atEnd called before Redis stops */
async function importOnce(
  { workspace }: Run,
  list: ListFile,
  atEnd: (redis: Redis) => Promise<unknown> = async () => undefined,
): Promise<Pass> {
  return timed({ workspace }, list.count, async (redisUrl) => {
    const redis = await connectForWriting(redisUrl);
    await redis.config('SET', 'slowlog-log-slower-than', '1000', 'slowlog-max-len', '10000');
    const { child, report } = await startImport(workspace, redisUrl, list.path);
    return { pid: child.pid, ended: report.then(() => atEnd(redis)).finally(() => redis.disconnect()) };
  });
}

async function plainImport({ workspace }: Run, list: ListFile): Promise<Pass> {
  return timed({ workspace }, list.count, async (redisUrl) => {
    const program = builtProgram('bench/peers/plain-import.js');
    const child = await workspace.start(process.execPath, [program, redisUrl, list.path]);
    return { pid: child.pid, ended: child.ended };
  });
}

async function postgresImport({ workspace }: Run, list: ListFile): Promise<Pass> {
  const postgres = await startPostgres(workspace, postgresPrograms() as string);
  const store = { pid: postgres.child.pid, stop: () => postgres.child.stop() };
  return timedWith(store, list.count, async () => {
    const program = builtProgram('bench/peers/postgres-import.js');
    const child = await workspace.start(process.execPath, [program, postgres.socketFolder, list.path]);
    const ended = child.ended.then((code) => {
      if (code !== 0) throw new Error(`The import into PostgreSQL failed: ${child.output.stderr}`);
    });
    return { pid: child.pid, ended };
  });
}

/** A server that stores the list. */
interface Store {
  readonly pid: number;
  stop(): Promise<void>;
}

async function timed(
  { workspace }: Pick<Run, 'workspace'>,
  count: number,
  start: (redisUrl: string) => Promise<{ pid: number; ended: Promise<unknown> }>,
): Promise<Pass> {
  const redis = await workspace.startRedis('everysec');
  return timedWith(redis, count, () => start(redis.url));
}

async function timedWith(
  store: Store,
  count: number,
  start: () => Promise<{ pid: number; ended: Promise<unknown> }>,
): Promise<Pass> {
  const storeBefore = cpuMicros(store.pid) ?? 0;
  const startedAt = performance.now();
  const { pid, ended } = await start();
  let cpu = 0;
  const poll = setInterval(() => {
    cpu = cpuMicros(pid) ?? cpu;
  }, 20);
  const memory = peakMemoryUntil(
    pid,
    ended.catch(() => undefined),
  );
  await ended.finally(() => clearInterval(poll));
  const ms = performance.now() - startedAt;
  const storeCpu = ((cpuMicros(store.pid) ?? 0) - storeBefore) / 1e6;
  await store.stop();
  return {
    recordsPerSecond: (count * 1_000) / ms,
    cpu: cpu / 1e6,
    storeCpu,
    peakMemory: ((await memory) ?? 0) / 1e6,
  };
}
