// The status of collections: data in Redis, problems, and commands that fix them.

import { type Candidate, comparedNumber, expiryOf, isPublishable, readCandidate } from './candidates.ts';
import type { Collection, ServedCollection } from './collections/define.ts';
import { urlSetting } from './collections/define.ts';
import {
  byText,
  causeText,
  historyCap,
  type ImportReport,
  type ImportResult,
  type PastImport,
  publicationOf,
  readHistory,
  rolledBackRefusal,
} from './import-history.ts';
import type { Redis } from './redis/connections.ts';
import { damageIn } from './redis/failures.ts';
import { countDamage } from './store/completeness.ts';
import {
  type LockHolder,
  type Pause,
  readLockHolder,
  readPause,
  readProgress,
  type StoredProgress,
} from './store/import-locks.ts';
import { collectionKeys } from './store/keys.ts';
import {
  formatProblem,
  type LiveVersion,
  readLiveVersion,
  type Version,
  versionOf,
} from './store/versions.ts';
import { ageText, count, counted, shortTime } from './text.ts';
import { futureCheckWarning, futureVersionWarning, knownTime } from './time.ts';

/** The state of the live version, by its document, the counts of its parts, and the marks of `verify`. */
export type LiveStatus = 'ok' | 'missing' | 'incomplete' | 'damaged' | 'unknown format';

/** A candidate, in the state of its collection. */
export interface CandidateState {
  readonly version: number;
  /** The end of its import, and when it is deleted; ISO 8601. */
  readonly madeAt: string;
  readonly expiresAt: string;
  /** Why a check refused it; `null`: it passed. */
  readonly reason: string | null;
  readonly totalCount: number;
  /** Compared with that version; `null`: none was live. */
  readonly comparedWith: number | null;
  readonly added: number;
  readonly changed: number;
  readonly removed: number;
  /** Whether another version went live since, so that it cannot be published any more. */
  readonly outdated: boolean;
}

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
  /** The checks that `--force` skipped for the live version, with their figures. */
  readonly despite: readonly string[];
  /** Who published the live version, and the reason; `null` if unknown. */
  readonly publishedBy: string | null;
  readonly publishedWhy: string | null;
  readonly lock: LockHolder | null;
  /** Of the import that holds the lock. */
  readonly progress: StoredProgress | null;
  readonly pause: Pause | null;
  readonly candidate: CandidateState | null;
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
  extends Pick<
    CollectionState,
    | 'checkedAt'
    | 'lastImports'
    | 'despite'
    | 'publishedBy'
    | 'publishedWhy'
    | 'lock'
    | 'progress'
    | 'pause'
    | 'candidate'
    | 'damage'
  > {
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
  const [
    live,
    checked = null,
    history = [],
    lock = null,
    progress = null,
    pause = null,
    candidate = null,
    marks = {},
  ] = await Promise.all([
    readable(readLiveVersion(redis, keys)),
    readable(redis.get(keys.checked)),
    readable(readHistory(redis, keys, historyCap)),
    readable(readLockHolder(redis, keys)),
    readable(readProgress(redis, keys)),
    readable(readPause(redis, keys)),
    readable(readCandidate(redis, keys)),
    readable(redis.hgetall(keys.damaged)),
  ]);
  const publication = live ? publicationOf(history, live.version) : undefined;
  const problem = live ? formatProblem(source.name, live) : null;
  const missing = live && problem === null ? ((await readable(countDamage(redis, keys, live))) ?? []) : [];
  return {
    live: problem === null ? (live ?? null) : null,
    liveStatus: liveStatusOf(live, { problem, missing, marks }),
    checkedAt: knownTime(checked),
    lastImports: history.slice(0, imports),
    despite: publication?.despite ?? [],
    publishedBy: publication?.by ?? null,
    publishedWhy: publication?.why ?? null,
    lock,
    progress: lock && progress,
    pause,
    candidate: candidate && candidateState(candidate, live ?? null),
    damage: [...unreadable, ...missing, ...Object.values(marks)].sort(),
    warnings: [...(problem === null ? [] : [problem]), ...futureCheckWarning(checked)],
  };
}

function candidateState(candidate: Candidate, live: LiveVersion | null): CandidateState {
  const { version, entry } = candidate;
  const { reason, added, changed, removed } = entry;
  return {
    ...{ version: version.version, madeAt: entry.endedAt, expiresAt: expiryOf(candidate) },
    ...{ reason, totalCount: version.totalCount, comparedWith: comparedNumber(candidate) },
    ...{ added, changed, removed, outdated: !isPublishable(candidate, live) },
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
    despite: source.despite,
    publishedBy: source.publishedBy,
    publishedWhy: source.publishedWhy,
    lock: source.lock,
    progress: source.progress,
    pause: source.pause,
    candidate: served.collection === served.source ? source.candidate : null,
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

/** A command, and its effect in a few words. */
export interface NextCommand {
  readonly command: string;
  readonly effect: string;
}

/** A problem, and the commands that help, in this order. */
export interface Advice {
  /** A sentence or two. */
  readonly problem: string;
  /** Reasons and causes. */
  readonly details?: readonly string[];
  readonly run: readonly NextCommand[];
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
    candidateAdvice(state),
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

function damageAdvice(state: CollectionState): Advice | null {
  const { collection, damage } = state;
  if (damage.length === 0) return null;
  const more = damage.length > maxDamage ? [`And ${damage.length - maxDamage} more.`] : [];
  const details = [...damage.slice(0, maxDamage), ...more];
  const repair = {
    command: `medref verify ${collection} --repair`,
    effect: 'rebuilds or deletes damaged versions',
  };
  const verify = { command: `medref verify ${collection}`, effect: 'lists all damage' };
  if (!isLiveDamaged(state))
    return { problem: 'DAMAGED data, but not of the live version.', details, run: [verify, repair] };
  // Without its keys, an import would fail.
  if (state.live === null)
    return {
      problem: `DAMAGED. ${readersText(state)}`,
      details,
      run: [verify, { ...repair, effect: 'repairs it' }],
    };
  return {
    problem: `DAMAGED live version. ${readersText(state)}`,
    details,
    run: [
      { command: `medref import ${collection}`, effect: 'rebuilds it from upstream' },
      { ...repair, effect: 'rebuilds it from intact records' },
      { command: `medref versions ${collection}`, effect: 'shows versions to roll back to' },
    ],
  };
}

/** How many sentences about damage an advice shows. */
const maxDamage = 2;

function isLiveDamaged({ liveStatus }: CollectionState): boolean {
  return liveStatus === 'incomplete' || liveStatus === 'damaged';
}

function ageAdvice(state: CollectionState, expected: Expectations, stale: boolean | null): Advice | null {
  const { collection, live, liveStatus } = state;
  const run = [{ command: `medref import ${collection}`, effect: 'imports now' }];
  const age = checkAgeSeconds(state);
  if (stale && age !== null) {
    const { maxAgeOf = '--max-age' } = expected;
    const problem = `Last successful upstream check: ${ageText(age)}; ${maxAgeOf} expects one sooner.`;
    return { problem, run };
  }
  if (stale && live !== null) return { problem: 'The time of the last upstream check is unknown.', run };
  if (liveStatus === 'missing' && expected.isImported && lastEnded(state.lastImports) === undefined)
    return { problem: `No live version: ${urlSetting(collection)} was never imported.`, run };
  return null;
}

/** How many causes of rejects an advice shows. */
const maxCauses = 3;

function importAdvice(state: CollectionState): Advice | null {
  const last = lastEnded(state.lastImports);
  if (last === undefined) return null;
  const { outcome, reason, causes = [], rejected, read } = last;
  const details = [...(reason === null ? [] : [reason]), ...causes.slice(0, maxCauses).map(causeText)];
  const isImporting = state.lock !== null;
  const run = isImporting ? [] : nextCommands(last);
  if (outcome === 'failed' || outcome === 'refused' || outcome === 'interrupted') {
    const ended = `${outcome.toUpperCase()} ${shortTime(last.endedAt)}.`;
    return { problem: `${ended} ${readersText(state)}`, details, run };
  }
  if (rejected === 0 || outcome === 'candidate') return null;
  const problem = `The last import rejected ${count(rejected)} of ${counted(read, 'record')}; readers do not get them.`;
  return { problem, details, run };
}

/** Returns what to do with a candidate that can be published. */
function candidateAdvice(state: CollectionState): Advice | null {
  const { collection, candidate, lock } = state;
  if (candidate === null || candidate.outdated) return null;
  const { version, totalCount, madeAt, expiresAt, reason } = candidate;
  const records = `${counted(totalCount, 'record')}, ${diffText(candidate)}`;
  // The advice about a refused import says what readers get, and why.
  const isShown = reason !== null && lastEnded(state.lastImports)?.reason === reason;
  const problem =
    `Candidate ${version} (${records}) has waited since ${shortTime(madeAt)}; it is kept until ${shortTime(expiresAt)}.` +
    (isShown ? '' : ` ${readersText(state)}`);
  const details = reason === null || isShown ? [] : [reason];
  return { problem, details, run: lock === null ? candidateCommands(collection, candidate) : [] };
}

/** Returns the commands for a candidate that waits. */
export function candidateCommands(
  collection: string,
  { version, reason }: Pick<CandidateState, 'version' | 'reason'>,
): NextCommand[] {
  const isRolledBack = reason?.includes(rolledBackRefusal) ?? false;
  return [
    { command: `medref diff ${collection} --to candidate`, effect: 'shows it' },
    {
      command: `medref publish ${collection} --candidate ${version}`,
      effect: isRolledBack ? 'publishes AGAIN what you rolled back' : 'publishes it',
    },
    { command: `medref discard ${collection}`, effect: 'deletes it' },
  ];
}

function readersText(state: CollectionState): string {
  const { live } = state;
  if (isLiveDamaged(state))
    return live === null ? 'Readers get 503.' : `Readers get 503 for parts of ${live.version}.`;
  if (live === null) return 'Readers get nothing: no version is live.';
  return `Readers still get ${live.version} (${counted(live.totalCount, 'record')}).`;
}

/** Returns the commands for an operator after an import with this result; {@link candidateCommands} has those for a candidate. */
export function nextCommands({
  collection,
  outcome,
  rejected,
  candidate,
}: Pick<ImportReport, 'collection' | 'outcome' | 'rejected'> &
  Partial<Pick<ImportResult, 'candidate'>>): NextCommand[] {
  const again = `medref import ${collection}`;
  const rejects = { command: `medref rejects ${collection}`, effect: 'shows rejected records' };
  const shown = rejected > 0 ? [rejects] : [];
  if (outcome === 'failed' || outcome === 'interrupted') return [{ command: again, effect: 'tries again' }];
  if (outcome !== 'refused' || candidate) return shown;
  return [...shown, { command: `${again} --dry-run`, effect: 'checks upstream again, publishes nothing' }];
}

/** Returns the differences to the live version: `+1 ~2 −3`. */
export function diffText({
  added,
  changed,
  removed,
}: Pick<ImportReport, 'added' | 'changed' | 'removed'>): string {
  return `+${count(added)} ~${count(changed)} −${count(removed)}`;
}

function pauseAdvice({ collection, pause }: CollectionState): Advice | null {
  if (pause === null) return null;
  const who = byText(pause);
  const problem = `Scheduled imports have been paused since ${shortTime(pause.since)}, after a rollback to version ${pause.version}${who && ` ${who}`}.`;
  return { problem, run: resumeCommands(collection) };
}

/** Returns the commands that end a pause. */
export function resumeCommands(collection: string): NextCommand[] {
  return [
    { command: `medref import ${collection} --dry-run`, effect: 'checks whether upstream is right again' },
    { command: `medref resume ${collection}`, effect: 'resumes scheduled imports' },
  ];
}

/** Returns the last import that had the lock. @param imports newest first */
export function lastEnded(imports: readonly PastImport[]): PastImport | undefined {
  return imports.find(({ outcome }) => outcome !== 'locked' && outcome !== 'paused');
}

/** Returns how long ago upstream was last checked; `null` without a live version or if the time is unknown. */
function checkAgeSeconds({ checkedAt, live }: CollectionState): number | null {
  const time = live && (checkedAt ?? knownTime(live.publishedAt));
  return time === null ? null : secondsSince(time);
}
