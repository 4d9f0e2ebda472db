// The status of collections: data in Redis, problems, and commands that fix them.

import type { Collection, ServedCollection } from './collections/define.ts';
import { urlSetting } from './collections/define.ts';
import { type PastImport, readHistory } from './import-history.ts';
import type { Redis } from './redis/connections.ts';
import { damageIn } from './redis/failures.ts';
import { countDamage } from './store/completeness.ts';
import { type LockHolder, type Pause, readLockHolder, readPause } from './store/import-locks.ts';
import { collectionKeys } from './store/keys.ts';
import { formatProblem, readLiveVersion, type Version, versionOf } from './store/versions.ts';
import { ageText, count, counted } from './text.ts';
import { futureCheckWarning, futureVersionWarning, knownTime } from './time.ts';

/** The state of the live version, by its document, the counts of its parts, and the marks of `verify`. */
export type LiveStatus = 'ok' | 'missing' | 'incomplete' | 'damaged' | 'unknown format';

/** A collection as Redis has it. */
export interface CollectionState {
  readonly collection: string;
  /** The collection that is imported instead of this one; `null`: this one. */
  readonly derivedFrom: string | null;
  readonly liveStatus: LiveStatus;
  /** `null` if there is none, its key is damaged, or its format is unknown. */
  readonly live: (Omit<Version, 'profile' | 'derived'> & { readonly ageSeconds: number }) | null;
  /** When upstream last had the same data as the live version; `null` if unknown or in the future. ISO 8601. */
  readonly checkedAt: string | null;
  /** Newest first. */
  readonly lastImports: readonly PastImport[];
  readonly lock: LockHolder | null;
  readonly pause: Pause | null;
  /** Known damage, as sentences: unreadable keys, missing parts of the live version, and the marks of `verify`. */
  readonly damage: readonly string[];
  readonly warnings: readonly string[];
}

/** Where to read, and how much. */
export interface StateOptions {
  readonly redis: Redis;
  readonly keyPrefix: string;
  readonly served: readonly ServedCollection[];
  /** Imports to read from each history; 5 by default. */
  readonly imports?: number;
}

/** Reads the state of collections. A damaged key hides no other: it becomes part of `damage`. */
export async function readCollectionStates({
  redis,
  keyPrefix,
  served,
  imports = 5,
}: StateOptions): Promise<CollectionState[]> {
  const sources = [...new Set(served.map(({ source }) => source))];
  const states = await Promise.all(
    sources.map(async (source) => [source, await readSource(source, { redis, keyPrefix, imports })] as const),
  );
  const found = new Map(states);
  return served.map((it) => stateOf(it, found.get(it.source) as SourceState));
}

interface SourceState
  extends Pick<CollectionState, 'checkedAt' | 'lastImports' | 'lock' | 'pause' | 'damage'> {
  readonly live: Version | null;
  readonly liveStatus: LiveStatus;
  readonly warnings: readonly string[];
}

async function readSource(
  source: Collection,
  { redis, keyPrefix, imports }: { redis: Redis; keyPrefix: string; imports: number },
): Promise<SourceState> {
  const keys = collectionKeys(keyPrefix, source);
  const unreadable: string[] = [];
  const readable = async <Value>(reading: Promise<Value>): Promise<Value | undefined> => {
    try {
      return await reading;
    } catch (error) {
      const damage = await damageIn(redis, error);
      if (!damage) throw error;
      unreadable.push(damage.message);
      return undefined;
    }
  };
  const [live, checked = null, lastImports = [], lock = null, pause = null, marks = {}] = await Promise.all([
    readable(readLiveVersion(redis, keys)),
    readable(redis.get(keys.checked)),
    readable(readHistory(redis, keys, imports)),
    readable(readLockHolder(redis, keys)),
    readable(readPause(redis, keys)),
    readable(redis.hgetall(keys.damaged)),
  ]);
  const problem = live ? formatProblem(source.name, live) : null;
  const missing = live && problem === null ? ((await readable(countDamage(redis, keys, live))) ?? []) : [];
  return {
    live: problem === null ? (live ?? null) : null,
    liveStatus: liveStatusOf(live, { problem, missing, marks }),
    checkedAt: knownTime(checked),
    lastImports,
    lock,
    pause,
    damage: [...unreadable, ...missing, ...Object.values(marks)].sort(),
    warnings: [...(problem === null ? [] : [problem]), ...futureCheckWarning(checked)],
  };
}

/** @param live `undefined` if its key cannot be read */
function liveStatusOf(
  live: Version | null | undefined,
  facts: { problem: string | null; missing: readonly string[]; marks: Readonly<Record<string, string>> },
): LiveStatus {
  if (live === null) return 'missing';
  if (facts.problem !== null) return 'unknown format';
  if (live === undefined || live.content in facts.marks) return 'damaged';
  return facts.missing.length > 0 ? 'incomplete' : 'ok';
}

function stateOf(served: ServedCollection, source: SourceState): CollectionState {
  const live = source.live && versionOf(served, source.live);
  const isMissing = source.live !== null && live === null;
  return {
    collection: served.collection.name,
    derivedFrom: served.collection === served.source ? null : served.source.name,
    liveStatus: isMissing ? 'missing' : source.liveStatus,
    live: live && withAge(live),
    checkedAt: source.checkedAt,
    lastImports: source.lastImports,
    lock: source.lock,
    pause: source.pause,
    damage: source.damage,
    warnings: [...(live ? futureVersionWarning(live) : []), ...source.warnings],
  };
}

function withAge(live: Version & { document?: string }): CollectionState['live'] {
  const { document, profile, derived, ...version } = live;
  return { ...version, ageSeconds: Math.round(secondsSince(version.publishedAt)) };
}

function secondsSince(time: string): number {
  return Math.max(0, (Date.now() - Date.parse(time)) / 1_000);
}

/** A problem, and the commands that help, in this order. */
export interface Advice {
  /** A sentence. */
  readonly problem: string;
  readonly run: readonly string[];
}

/** An operator's expectations of a collection. */
export interface Expectations {
  /** The highest age of the last successful upstream check, in seconds; `null`: any age. */
  readonly maxAgeSeconds: number | null;
  /** The source of that limit; `--max-age` by default. */
  readonly maxAgeOf?: string;
  /** Whether the settings name an upstream of the collection. */
  readonly isImported: boolean;
}

/** The state of a collection, with its problems. */
export interface CollectionStatus extends CollectionState {
  /**
   * Whether the last successful upstream check is too old; after a rollback, the time since the rollback counts. `null` without
   * a maximum age, or without a live version and an upstream.
   */
  readonly stale: boolean | null;
  /** Problems, the worst first; empty for a derived collection. */
  readonly advice: readonly Advice[];
}

/** Adds to the state of a collection whether it is stale, and its problems. */
export function evaluate(state: CollectionState, expected: Expectations): CollectionStatus {
  const stale = isStale(state, expected);
  if (state.derivedFrom !== null) return { ...state, stale, advice: [] };
  const advice = [
    damageAdvice(state),
    ageAdvice(state, expected, stale),
    importAdvice(state),
    pauseAdvice(state),
    ...state.warnings.map((problem) => ({ problem, run: [] })),
  ];
  return { ...state, stale, advice: advice.filter((it) => it !== null) };
}

function isStale(state: CollectionState, { maxAgeSeconds, isImported }: Expectations): boolean | null {
  if (maxAgeSeconds === null) return null;
  const age = checkAgeSeconds(state);
  if (age !== null) return age > maxAgeSeconds;
  return isImported || state.live !== null ? true : null;
}

function damageAdvice({ collection, damage, liveStatus }: CollectionState): Advice | null {
  const [first, ...others] = damage;
  if (first === undefined) return null;
  const more = others.length === 0 ? '' : ` (and ${others.length} more)`;
  const run =
    liveStatus === 'incomplete'
      ? [`medref import ${collection}`]
      : [`medref verify ${collection}`, `medref verify ${collection} --repair`];
  return { problem: `Damage found${more}: ${first}`, run };
}

function ageAdvice(state: CollectionState, expected: Expectations, stale: boolean | null): Advice | null {
  const { collection, live, liveStatus } = state;
  const run = [`medref import ${collection}`];
  const age = checkAgeSeconds(state);
  if (stale && age !== null) {
    const { maxAgeOf = '--max-age' } = expected;
    const problem = `Last successful upstream check: ${ageText(age)}; ${maxAgeOf} expects one sooner.`;
    return { problem, run };
  }
  if (stale && live !== null) return { problem: 'The time of the last upstream check is unknown.', run };
  if (liveStatus === 'missing' && expected.isImported && lastEnded(state) === undefined)
    return { problem: `No live version: ${urlSetting(collection)} was never imported.`, run };
  return null;
}

function importAdvice(state: CollectionState): Advice | null {
  const last = lastEnded(state);
  if (last === undefined) return null;
  const again = `medref import ${state.collection}`;
  const rejects = last.rejected > 0 ? [`medref rejects ${state.collection}`] : [];
  if (last.outcome === 'failed') return { problem: `The last import failed: ${last.reason}`, run: [again] };
  if (last.outcome === 'refused')
    return {
      problem: `The last import was refused: ${last.reason}`,
      run: [...rejects, `${again} --dry-run`],
    };
  if (last.rejected === 0) return null;
  const problem = `The last import rejected ${count(last.rejected)} of ${counted(last.read, 'record')}.`;
  return { problem, run: rejects };
}

function pauseAdvice({ collection, pause }: CollectionState): Advice | null {
  if (pause === null) return null;
  const problem = `Scheduled imports are paused since ${pause.since}, after a rollback to version ${pause.version}.`;
  return { problem, run: [`medref import ${collection} --dry-run`, `medref resume ${collection}`] };
}

/** Returns the last import that had the lock. */
function lastEnded({ lastImports }: CollectionState): PastImport | undefined {
  return lastImports.find(({ outcome }) => outcome !== 'locked' && outcome !== 'paused');
}

/** Returns how long ago upstream was last checked; `null` without a live version or if the time is unknown. */
function checkAgeSeconds({ checkedAt, live }: CollectionState): number | null {
  const time = live && (checkedAt ?? knownTime(live.publishedAt));
  return time === null ? null : secondsSince(time);
}
