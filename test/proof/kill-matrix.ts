// Kills a command of medref at a chosen Redis command while readers read, and checks the result.

import { constants, setPriority } from 'node:os';
import { expect } from 'chai';
import type { ImportOutcome } from '../../importer/report.ts';
import { connectForWriting, type Redis } from '../../shared/redis/connections.ts';
import { type LiveVersion, readLiveVersion } from '../../shared/store/versions.ts';
import { startApi, type TestApi } from '../support/api.ts';
import { aheadOfClock, importFrom } from '../support/importing.ts';
import { bundled, startMedref } from '../support/medref.ts';
import {
  type ProxiedCommand,
  type Strike,
  scriptTexts,
  startRedisProxy,
  strikeOnce,
} from '../support/redis-proxy.ts';
import { proofSetUp, startTestRedis, type TestRedis } from '../support/redis-server.ts';
import { type GenerationUpstream, type Subject, startGenerations } from './generations.ts';
import { checkKeySpace, checkNothingUnderWay, keysOf } from './key-space.ts';
import { isFull } from './proof.ts';
import { pauses, startReaders } from './readers.ts';

/** The Redis, API and upstream of one series of kills. Two lanes share nothing. */
export interface Lane {
  readonly subject: Subject;
  readonly server: TestRedis;
  readonly redis: Redis;
  readonly api: TestApi;
  readonly upstream: GenerationUpstream;
  /** How long a reader waits after each response, in ms. */
  readonly pauseMs: number;
  close(): Promise<void>;
}

/** Starts a lane; the caller calls `close`. */
export async function startLane(
  subject: Subject,
  pauseMs = isFull ? pauses.proof : pauses.suite,
): Promise<Lane> {
  const server = await startTestRedis(proofSetUp());
  const redis = await connectForWriting(server.url);
  await redis.set(keysOf(subject.collection.name).next, aheadOfClock);
  const api = await startApi({ redisUrl: server.url });
  const upstream = await startGenerations(subject);
  return {
    ...{ subject, server, redis, api, upstream, pauseMs },
    async close() {
      await Promise.all([api.stop(), upstream.close()]);
      redis.disconnect();
      await server.stop();
    },
  };
}

/** A command to kill, with the state before it and the result after it. */
export interface Scenario {
  readonly title: string;
  readonly args: (collection: string) => readonly string[];
  readonly settings?: Readonly<Record<string, string>>;
  /** Prepares the state before the command. @returns the generation that the command publishes, or `null` */
  prepare(lane: Lane): Promise<number | null>;
  /** Whether no version is live before the command. */
  readonly first: boolean;
  /** The exit code of an undisturbed run. */
  readonly exitCode: number;
}

/** Imports the current list of upstream, undisturbed. @returns the outcome */
async function importNext(
  { subject, server, upstream }: Lane,
  publish: 'auto' | 'manual' = 'auto',
): Promise<ImportOutcome> {
  const report = await importFrom(upstream.url(), subject.collection, {
    redisUrl: server.url,
    maxChangePercent: 100,
    publish,
  });
  return report.outcome;
}

/** Imports the next list, so that its version waits for an operator. */
async function leaveCandidate(lane: Lane): Promise<void> {
  lane.upstream.generation += 1;
  expect(await importNext(lane, 'manual')).to.equal('candidate');
}

export const scenarios = {
  over: {
    title: 'an import over a live version',
    args: (collection) => ['import', collection],
    prepare: async ({ upstream }) => {
      upstream.generation += 1;
      return upstream.generation;
    },
    first: false,
    exitCode: 0,
  },
  first: {
    title: 'the first import',
    args: (collection) => ['import', collection],
    prepare: async ({ redis, api, subject, upstream }) => {
      const { name } = subject.collection;
      // The pointer is deleted first: otherwise an API that still reads would report damage.
      await redis.del(keysOf(name).live);
      while ((await api.get(`/${name}`)).status !== 503);
      const stale = await redis.keys(`medref:{${name}}:*`);
      if (stale.length > 0) await redis.unlink(...stale);
      await redis.set(keysOf(name).next, aheadOfClock);
      await redis.script('FLUSH');
      upstream.generation += 1;
      return upstream.generation;
    },
    first: true,
    exitCode: 0,
  },
  rollback: {
    title: 'a rollback',
    args: (collection) => ['rollback', collection],
    prepare: async (lane) => {
      lane.upstream.generation += 1;
      expect(await importNext(lane)).to.equal('published');
      return lane.upstream.generation - 1;
    },
    first: false,
    exitCode: 0,
  },
  refused: {
    title: 'an import that is refused',
    args: (collection) => ['import', collection],
    prepare: async ({ upstream }) => {
      upstream.generation += 1;
      upstream.sends = (response) => response.end('{"data":[{}]}');
      return null;
    },
    first: false,
    exitCode: 3,
  },
  unchanged: {
    title: 'an import of the same records',
    args: (collection) => ['import', collection, '--force'],
    prepare: async () => null,
    first: false,
    exitCode: 0,
  },
  fewer: {
    title: 'an import that keeps fewer versions than before',
    args: (collection) => ['import', collection],
    settings: { KEEP_VERSIONS: '2' },
    prepare: async (lane) => {
      for (let i = 0; i < 2; i++) {
        lane.upstream.generation += 1;
        expect(await importNext(lane)).to.equal('published');
      }
      lane.upstream.generation += 1;
      return lane.upstream.generation;
    },
    first: false,
    exitCode: 0,
  },
  candidate: {
    title: 'an import whose version waits as a candidate, in place of the one before',
    args: (collection) => ['import', collection],
    settings: { PUBLISH: 'manual' },
    prepare: async (lane) => {
      await leaveCandidate(lane);
      lane.upstream.generation += 1;
      return null;
    },
    first: false,
    exitCode: 0,
  },
  publish: {
    title: 'the publication of a candidate',
    args: (collection) => ['publish', collection],
    prepare: async (lane) => {
      await leaveCandidate(lane);
      return lane.upstream.generation;
    },
    first: false,
    exitCode: 0,
  },
  discard: {
    title: 'the end of a candidate',
    args: (collection) => ['discard', collection],
    prepare: async (lane) => {
      await leaveCandidate(lane);
      return null;
    },
    first: false,
    exitCode: 0,
  },
  dryRun: {
    title: 'a dry run',
    args: (collection) => ['import', collection, '--dry-run'],
    prepare: async ({ upstream }) => {
      upstream.generation += 1;
      return null;
    },
    first: false,
    exitCode: 0,
  },
} as const satisfies Record<string, Scenario>;

/** A kill, and which version was live after it. */
export interface KillPoint {
  readonly nth: number;
  /** The Redis command at which the run was killed. */
  readonly command: string;
  readonly moment: Strike['moment'];
  readonly live: 'before' | 'after';
}

/** When a run is killed. */
interface Kill {
  /** Chooses the command: the first for which it returns true. */
  readonly isMeant: (command: ProxiedCommand) => boolean;
  readonly moment: Strike['moment'];
  /** Resolves when the lock is free; without it, the lock is deleted. */
  readonly untilFree?: () => Promise<void>;
}

/**
 * Kills one run of a scenario at one of its Redis commands, and checks the guarantees.
 * @returns `null` if the run ended before that command
 */
export async function killOnce(
  lane: Lane,
  scenario: Scenario,
  { untilFree, ...kill }: Kill,
): Promise<KillPoint | null> {
  const { subject, redis, api, upstream, pauseMs } = lane;
  const collection = subject.collection.name;
  const keys = keysOf(collection);
  if (!scenario.first && !(await readLiveVersion(redis, keys))) await importTwice(lane);

  // Otherwise the first run of a script would send one more command than the next run.
  if (!scenario.first) await loadScripts(redis);
  const wanted = await scenario.prepare(lane);
  const old = await readLiveVersion(redis, keys);
  const readers = startReaders(api, subject, { unavailable: scenario.first }, pauseMs);
  try {
    const run = await runScenario(lane, scenario, kill);
    if (!run.killedAt) {
      expect(run.code, run.stderr).to.equal(scenario.exitCode);
      upstream.sends = null;
      return null;
    }
    const { nth, name: command } = run.killedAt;
    const { moment } = kill;
    expect(run.code, `${command} ${moment}: ${run.stderr}`).to.equal(null);

    await readers.more(4);
    const isNew = (live: LiveVersion | null) => live?.version !== old?.version;
    const rolledBack = async () => (await redis.exists(keys.pause)) === 1;
    const { live, expiring } = await checkKeySpace(redis, collection, { rolledBack: await rolledBack() });
    expect(expiring.get(keys.lock) ?? 0).to.be.at.most(30_000);
    if (isNew(live)) {
      expect(wanted, 'only what was to become live may be live').not.to.equal(null);
      await readers.seen(wanted as number);
      expect(readers.versions.get(live?.version as number)).to.equal(wanted);
      expect(await rolledBack()).to.equal(scenario.title === scenarios.rollback.title);
    } else {
      expect(live?.document, 'the live version is as it was').to.equal(old?.document);
    }
    const point: KillPoint = { nth, command, moment, live: isNew(live) ? 'after' : 'before' };

    upstream.sends = null;
    if (await rolledBack()) upstream.generation += 1;
    const isThere = [...readers.versions].some(
      ([version, generation]) => version === live?.version && generation === upstream.generation,
    );
    if (untilFree) await untilFree();
    else await redis.del(keys.lock);
    expect(await importNext(lane)).to.equal(isThere ? 'unchanged' : 'published');
    await readers.seen(upstream.generation);
    await checkNothingUnderWay(redis, collection, { rolledBack: false });
    return point;
  } finally {
    await readers.stop();
  }
}

/**
 * Kills runs of a scenario at each of their Redis commands, from the first to the last.
 * @param names if given: kills only at the first command of each of these names
 */
export async function killAtEach(
  lane: Lane,
  scenario: Scenario,
  moment: Strike['moment'],
  names: readonly string[] | null,
): Promise<KillPoint[]> {
  const points: KillPoint[] = [];
  for (const name of names ?? []) {
    const point = await killOnce(lane, scenario, { isMeant: (command) => command.name === name, moment });
    if (point) points.push(point);
  }
  if (names) return points;
  for (let wanted = 1; ; wanted++) {
    const point = await killOnce(lane, scenario, { isMeant: ({ nth }) => nth === wanted, moment });
    if (!point) return points;
    points.push(point);
  }
}

/** Returns the names of the Redis commands that an undisturbed run sends. */
export async function undisturbedCommands(lane: Lane, scenario: Scenario): Promise<readonly string[]> {
  if (!scenario.first) {
    if (!(await readLiveVersion(lane.redis, keysOf(lane.subject.collection.name)))) await importTwice(lane);
    await loadScripts(lane.redis);
  }
  await scenario.prepare(lane);
  const { code, commands, stderr } = await runScenario(lane, scenario, {
    isMeant: () => false,
    moment: 'before',
  });
  expect(code, stderr).to.equal(scenario.exitCode);
  lane.upstream.sends = null;
  return commands;
}

/** Loads all scripts into Redis, so that no command is sent twice. */
async function loadScripts(redis: Redis): Promise<void> {
  for (const text of scriptTexts.values()) await redis.script('LOAD', text);
}

async function importTwice(lane: Lane): Promise<void> {
  for (let i = 0; i < 2; i++) {
    lane.upstream.generation += 1;
    expect(await importNext(lane)).to.equal('published');
  }
}

/** Raises the priority of an import, which lowers it. Otherwise readers that never pause would make a proof much longer. */
function raisePriority(pid: number): void {
  try {
    setPriority(pid, constants.priority.PRIORITY_NORMAL);
  } catch {
    // Fails without root, or if the process has ended.
  }
}

/** A command of medref to kill. */
interface KilledRun extends Pick<Kill, 'isMeant' | 'moment'> {
  readonly redisPort: number;
  readonly args: readonly string[];
  readonly settings: Readonly<Record<string, string>>;
}

/** Runs a command of medref behind a proxy that kills it; `killedAt` is `undefined` if it ended before. */
export async function runAndKill({ redisPort, args, settings, isMeant, moment }: KilledRun): Promise<{
  killedAt: ProxiedCommand | undefined;
  commands: readonly string[];
  code: number | null;
  stderr: string;
}> {
  const program = await bundled('bin/medref.ts');
  let killedAt: ProxiedCommand | undefined;
  const noted = (command: ProxiedCommand) => {
    if (!isMeant(command)) return false;
    killedAt = command;
    return true;
  };
  const strike = strikeOnce(noted, {
    moment,
    act: async (link) => {
      running.process.kill('SIGKILL');
      await running.ended;
      link.cut();
    },
  });
  const proxy = await startRedisProxy(redisPort, (it) => {
    raisePriority(running.process.pid as number);
    return strike(it);
  });
  const running = startMedref(args, { ...settings, REDIS_URL: proxy.url }, { program });
  try {
    const { code, stderr } = await running.ended;
    return { killedAt, commands: proxy.commands, code, stderr };
  } finally {
    running.process.kill('SIGKILL');
    await proxy.close();
  }
}

/** Runs the command of a scenario and kills it. */
function runScenario(
  { subject, server, upstream }: Lane,
  scenario: Scenario,
  kill: Pick<Kill, 'isMeant' | 'moment'>,
): ReturnType<typeof runAndKill> {
  const collection = subject.collection.name;
  return runAndKill({
    ...kill,
    redisPort: server.port,
    args: scenario.args(collection),
    settings: {
      [`${collection.toUpperCase()}_URL`]: upstream.url().href,
      MAX_CHANGE_PERCENT: '100',
      ...scenario.settings,
    },
  });
}
