// A list of a million records: imported, changed, rolled back, and let go of, while readers page through it.
// Out: how long reads took around each step, and which commands and events of Redis were slow.

import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { constants, setPriority, tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { pathToFileURL } from 'node:url';
import type { ImportReport } from '../../importer/report.ts';
import { connectForListening, connectForWriting, type Redis } from '../../shared/redis/connections.ts';
import { startApi } from '../support/api.ts';
import { aheadOfClock } from '../support/importing.ts';
import { medrefProcess } from '../support/medref.ts';
import { scriptNames } from '../support/redis-proxy.ts';
import { startTestRedis, type TestRedis } from '../support/redis-server.ts';
import { keysOf } from './key-space.ts';
import { loadScripts } from './kill-matrix.ts';
import { type LargeList, largeList } from './large-list.ts';
import { type MachineWitness, startWitness } from './machine-witness.ts';
import { type Finding, inDigits, type Table } from './reliability-page.ts';
import { startTimedReaders, type TimedReaders } from './timed-readers.ts';

const size = 1_000_000;
/** The number of the nth version. */
const nth = (n: number) => aheadOfClock + n;
/** Which generation each version has: three imports, and a rollback before the last one. */
const generationOf = (version: number): number | undefined => [undefined, 1, 2, 1, 3][version - nth(0)];

/** What is promised, in ms: no command and no event of Redis holds readers up for longer. */
const longestCommandMs = 10;
const longestEventMs = 20;
/** From which time on commands are kept, in ms: the slow log is no load of its own while it is short. */
const slowMs = 5;
const keepVersions = 2;
const quietMs = 10_000;
const aroundMs = 2_000;

const text = `${inDigits(size)} products, of which each import changes, adds and removes some thousands; KEEP_VERSIONS is ${keepVersions}. Two readers page without pause through one
API, pages of 200, and compare each answer byte for byte; API and readers share a process. Redis is set up as docs/OPERATIONS.md says, but keeps nothing on
disk, so there is no fork and no append-only file in these figures. No command may have taken longer than ${longestCommandMs} ms by Redis' slow log, no event of the
latency monitor ${longestEventMs} ms, and no read may fail. Commands that a script runs are listed beside the script. Redis, the importer, API and readers share
this machine with whatever else it does, so Redis goes before the others where the proof may have it so; and what the kernel says that Redis waited for a
processor, at most in as long as the command took and in the same second, is taken off before a time is judged. Both times are told.`;

/** One step and what readers met in it; without readers before something is live. */
interface Step {
  readonly title: string;
  readonly seconds: number;
  readonly reads: number;
  readonly longestMs: number;
  readonly heldUpMs: number;
  /** Of the publication, where the step has one. */
  readonly publication: { readonly longestMs: number; readonly seenAfterMs: number } | null;
  readonly redisBytes: number;
}

/** What the steps work with. */
interface Bench {
  readonly server: TestRedis;
  readonly redis: Redis;
  readonly list: LargeList;
  readonly folder: string;
  readonly announcements: Map<number, number>;
  readonly witness: MachineWitness;
  readonly say: (progress: string) => void;
}

/** Takes a million records through the life of a version. */
export async function proveMillionRecords(say: (progress: string) => void): Promise<Finding> {
  const folder = await mkdtemp(join(tmpdir(), 'medref-million-'));
  const server = await startTestRedis();
  const redis = await connectForWriting(server.url);
  const listener = connectForListening(server.url);
  const witness = startWitness(await processIdOf(redis));
  try {
    const announcements = new Map<number, number>();
    listener.on('message', (_, version: string) => announcements.set(Number(version), performance.now()));
    await listener.subscribe(keysOf('products').announcements);
    await redis.set(keysOf('products').next, nth(0));
    await watch(redis);
    say(`makes ${inDigits(size)} records`);
    const bench: Bench = { server, redis, list: largeList(size, 3), folder, announcements, witness, say };
    return await liveThrough(bench);
  } finally {
    listener.disconnect();
    redis.disconnect();
    await Promise.all([witness.stop(), server.stop(), rm(folder, { recursive: true, force: true })]);
  }
}

/** Slow commands are kept from now on, and slow events; what else the machine does is to show in them as little as may be. */
async function watch(redis: Redis): Promise<void> {
  await giveWay(await processIdOf(redis));
  await loadScripts(redis);
  await redis.config('SET', 'slowlog-log-slower-than', String(slowMs * 1000));
  await redis.config('SET', 'slowlog-max-len', '1000000');
  await redis.config('SET', 'latency-monitor-threshold', String(longestEventMs));
}

async function processIdOf(redis: Redis): Promise<number> {
  return Number(/^process_id:(\d+)/m.exec(await redis.info('server'))?.[1]);
}

/**
 * Redis goes before other processes, as on a machine of its own; where that is not ours to decide, the witness alone must do.
 * Linux may share its processors out among sessions first, and Redis has one of its own.
 */
async function giveWay(pid: number): Promise<void> {
  const priority = constants.priority.PRIORITY_HIGHEST;
  try {
    setPriority(pid, priority);
    await writeFile(`/proc/${pid}/autogroup`, String(priority));
  } catch {
    // It takes root's rights, and sessions that are told apart.
  }
}

async function liveThrough(bench: Bench): Promise<Finding> {
  const steps: Step[] = [await publish(bench, 'the first import', nth(1), null)];
  const api = await startApi({ redisUrl: bench.server.url });
  const readers = startTimedReaders(api, { list: bench.list, generationOf });
  try {
    await sleep(1_000); // Until code is compiled and connections are open.
    steps.push(await step(bench, 'nothing, for comparison', readers, () => sleep(quietMs)));
    steps.push(await publish(bench, 'an import of a changed list', nth(2), readers));
    steps.push(await publish(bench, 'a rollback', nth(3), readers));
    steps.push(await publish(bench, 'an import after which a version leaves', nth(4), readers));
    steps.push(await step(bench, 'the content that has left is let go', readers, () => gone(bench, nth(2))));
  } finally {
    await readers.stop();
    await api.stop();
  }
  await sleep(aroundMs); // Until the witness has told of the last second.
  const events = await slowEvents(bench); // First: reading the slow log is a slow command too.
  const commands = await slowCommands(bench);
  return {
    text,
    tables: [
      stepTable(steps, readers),
      timesTable(['Command of Redis', `Times over ${slowMs} ms`], commands),
      timesTable(['Event of Redis', `Times of ${longestEventMs} ms or more`], events),
    ],
    faults: [
      ...readers.faults.map((fault) => `A read failed: ${fault}`),
      ...commands
        .filter(({ ownMs }) => ownMs > longestCommandMs)
        .map(({ name, ownMs }) => `${name} took ${inDigits(ownMs, 1)} ms of its own.`),
      ...events
        .filter(({ ownMs }) => ownMs > longestEventMs)
        .map(
          ({ name, ownMs, slowest }) =>
            `The event ${name} took ${inDigits(ownMs)} ms of its own, ${whileRan(slowest, commands)}.`,
        ),
    ],
  };
}

/** A step and what readers met while it went on. */
async function step(
  { redis, witness, say }: Bench,
  title: string,
  readers: TimedReaders | null,
  act: () => Promise<Step['publication'] | undefined>,
): Promise<Step> {
  const from = performance.now();
  const startedAt = Date.now();
  const publication = (await act()) ?? null;
  const to = performance.now();
  const info = await redis.info('memory');
  const met = readers?.between(from, to) ?? { reads: 0, longestMs: 0 };
  say(`${title}: ${inDigits((to - from) / 1000)} s`);
  return {
    ...{ title, seconds: (to - from) / 1000, publication, ...met },
    heldUpMs: witness.longestMs(startedAt, Date.now()),
    redisBytes: Number(/^used_memory:(\d+)/m.exec(info)?.[1]),
  };
}

/** Runs the command that makes a version live, an import or a rollback as its generation says. */
async function publish(
  bench: Bench,
  title: string,
  version: number,
  readers: TimedReaders | null,
): Promise<Step> {
  const generation = generationOf(version) as number;
  const path = join(bench.folder, `${generation}.json`);
  const isRollback = generation < (generationOf(version - 1) ?? 0);
  if (!isRollback) await bench.list.write(generation, path);
  const made = await step(bench, title, readers, async () => {
    await runCommand(isRollback ? ['rollback', 'products'] : ['import', 'products'], bench, path);
    const publishedAt = bench.announcements.get(version) ?? Number.NaN;
    if (!readers) return undefined;
    const seenAt = await readers.seen(version);
    await sleep(Math.max(0, publishedAt + aroundMs - performance.now()));
    const { longestMs } = readers.between(publishedAt - aroundMs, publishedAt + aroundMs);
    return { longestMs, seenAfterMs: Math.max(0, seenAt - publishedAt) };
  });
  await rm(path, { force: true });
  return made;
}

async function runCommand(args: readonly string[], bench: Bench, path: string): Promise<void> {
  const { code, stdout, stderr, json } = await medrefProcess([...args, '--json'], {
    REDIS_URL: bench.server.url,
    PRODUCTS_URL: pathToFileURL(path).href,
    KEEP_VERSIONS: String(keepVersions),
  });
  if (code !== 0) throw new Error(`medref ${args.join(' ')} ended with ${code}: ${stdout} ${stderr}`);
  const [report] = json<{ imports?: ImportReport[] }>().imports ?? [];
  if (report) bench.say(`${report.added} added, ${report.changed} changed, ${report.removed} removed`);
}

/** Waits until a content that has left is gone, and a little longer. */
async function gone({ redis }: Bench, content: number): Promise<undefined> {
  const { order, records } = keysOf('products').content(content);
  while ((await redis.exists(order, records)) > 0) await sleep(100);
  await sleep(aroundMs);
}

/** Times of a command, or an event, of Redis. */
interface SlowTimes {
  readonly name: string;
  readonly count: number;
  readonly medianMs: number;
  readonly longestMs: number;
  /** The longest time less what Redis waited for a processor then. */
  readonly ownMs: number;
  /** The one that this is of. */
  readonly slowest: SlowTime;
  readonly times: readonly SlowTime[];
}

/** One time, and when it ended. */
interface SlowTime {
  readonly ms: number;
  readonly second: number;
}

async function slowCommands({ redis, witness }: Bench): Promise<SlowTimes[]> {
  const entries = (await redis.call('SLOWLOG', 'GET', '1000000')) as [number, number, number, string[]][];
  const byName = new Map<string, SlowTime[]>();
  for (const [, second, microseconds, args] of entries) {
    const name = commandName(args);
    const times = byName.get(name) ?? [];
    times.push({ ms: microseconds / 1000, second });
    byName.set(name, times);
  }
  return [...byName]
    .map(([name, times]) => slowTimes(name, times, witness))
    .sort((a, b) => b.longestMs - a.longestMs);
}

function slowTimes(name: string, times: readonly SlowTime[], witness: MachineWitness): SlowTimes {
  const sorted = times.map(({ ms }) => ms).sort((a, b) => a - b);
  const own = times.map((time) => time.ms - witness.heldUpMs(time));
  const ownMs = own.reduce((longest, ms) => Math.max(longest, ms), 0);
  return {
    ...{ name, times, count: sorted.length, longestMs: sorted.at(-1) as number, ownMs },
    medianMs: sorted[Math.floor(sorted.length / 2)] as number,
    slowest: times[Math.max(0, own.indexOf(ownMs))] as SlowTime,
  };
}

/** What ran when an event struck. */
function whileRan({ second }: SlowTime, commands: readonly SlowTimes[]): string {
  const ran = commands.flatMap(({ name, times }) =>
    times.filter((time) => time.second === second).map(({ ms }) => `${name} (${inDigits(ms, 1)} ms)`),
  );
  const at = new Date(second * 1000).toISOString().slice(11, 19);
  return ran.length === 0
    ? `at ${at}, when no command was slow`
    : `at ${at}, when there ran ${ran.join(', ')}`;
}

function commandName([command = '', digest = '']: readonly string[]): string {
  const name = command.toUpperCase();
  const script = name === 'EVALSHA' ? scriptNames.get(digest) : undefined;
  return script ? `${script}.lua` : name;
}

/** What the latency monitor has: of each event the longest time of each second. */
async function slowEvents({ redis, witness }: Bench): Promise<SlowTimes[]> {
  const latest = (await redis.call('LATENCY', 'LATEST')) as [name: string][];
  const events = latest.map(async ([name]) => {
    const history = (await redis.call('LATENCY', 'HISTORY', name)) as [second: number, ms: number][];
    return slowTimes(
      name,
      history.map(([second, ms]) => ({ ms, second })),
      witness,
    );
  });
  return Promise.all(events);
}

function stepTable(steps: readonly Step[], { faults }: TimedReaders): Table {
  const around = `Longest read within ${aroundMs / 1000} s of the publication, ms`;
  return {
    head: [
      ...['While', 'Seconds', 'Reads', 'Longest read, ms', around, 'Readers see it after, ms'],
      'Redis waited for a processor, ms',
      'Redis used_memory, MB',
    ],
    rows: [
      ...steps.map(({ title, seconds, reads, longestMs, heldUpMs, publication, redisBytes }) => [
        ...[title, Math.round(seconds), reads, reads === 0 ? '' : Math.ceil(longestMs)],
        ...(publication ? [Math.ceil(publication.longestMs), Math.ceil(publication.seenAfterMs)] : ['', '']),
        Math.ceil(heldUpMs),
        Math.round(redisBytes / 1_000_000),
      ]),
      ['failed reads', '', faults.length, '', '', '', '', ''],
    ],
  };
}

const timesHead = ['Median of these, ms', 'Longest, ms', 'Longest less waits for a processor, ms'];

function timesTable(head: readonly [name: string, count: string], times: readonly SlowTimes[]): Table {
  const rows = times.map(({ name, count, medianMs, longestMs, ownMs }) => [
    ...[name, count, inDigits(medianMs, 1), inDigits(longestMs, 1), inDigits(ownMs, 1)],
  ]);
  return { head: [...head, ...timesHead], rows: rows.length === 0 ? [['none', 0, '', '', '']] : rows };
}
