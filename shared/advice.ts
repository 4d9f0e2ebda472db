// In: the state of a collection. Out: what is wrong with it, and the commands that an operator runs next.

import type { CollectionState } from './collection-state.ts';
import { urlSetting } from './collections/define.ts';
import { knownTime } from './dated-ahead.ts';
import { ageText } from './figures.ts';

/** Something that is wrong, and what to run about it, in this order. */
export interface Advice {
  /** A sentence. */
  readonly problem: string;
  readonly run: readonly string[];
}

/** What status was asked, and where it is asked. */
export interface Asked {
  /** How old the last sign may be that upstream is as it is live, in seconds; `null`: however old. */
  readonly maxAgeSeconds: number | null;
  /** What allows no more, as sentences name it; `--max-age` unless it is given. */
  readonly maxAgeOf?: string;
  /** Whether the settings say where the collection comes from. */
  readonly isImported: boolean;
}

/** A collection's state, judged. */
export interface CollectionStatus extends CollectionState {
  /**
   * Whether upstream was not found as it is live for longer than is allowed; `null` where that was not asked, or concerns
   * nobody, since nothing is live and no upstream is set. After a rollback it counts from then.
   */
  readonly stale: boolean | null;
  /** What is wrong, the worst first; nothing of a collection that comes and goes with another. */
  readonly advice: readonly Advice[];
}

/** Judges the state of a collection. */
export function judged(state: CollectionState, asked: Asked): CollectionStatus {
  const advice = judgements.flatMap((judge) => judge(state, asked));
  return { ...state, stale: isStale(state, asked), advice: state.derivedFrom === null ? advice : [] };
}

/** A collection's state, and what is asked of it. */
export interface Judgeable {
  readonly state: CollectionState;
  readonly asked: Asked;
}

/** What is wrong with several collections, the worst first, each with the collection that it is about. */
export function adviceOnAll(
  all: readonly Judgeable[],
): readonly (Advice & { readonly collection: string })[] {
  const own = all.filter(({ state }) => state.derivedFrom === null);
  return judgements.flatMap((judge) =>
    own.flatMap(({ state, asked }) =>
      judge(state, asked).map((advice) => ({ ...advice, collection: state.collection })),
    ),
  );
}

/** Each judges one thing; the worst first. */
const judgements: readonly ((state: CollectionState, asked: Asked) => Advice[])[] = [
  ...[ofDamage, ofAge, ofLastImport, ofHold, ofClock],
];

function isStale(state: CollectionState, { maxAgeSeconds, isImported }: Asked): boolean | null {
  if (maxAgeSeconds === null) return null;
  const age = secondsSinceFound(state);
  if (age !== null) return age > maxAgeSeconds;
  return isImported || state.live !== null ? true : null;
}

function ofDamage({ collection, damage }: CollectionState): Advice[] {
  const [first, ...others] = damage;
  if (first === undefined) return [];
  const more = others.length === 0 ? '' : ` (and ${others.length} more)`;
  const run = [`medref verify ${collection}`, `medref verify ${collection} --repair`];
  return [{ problem: `A reader has found damage${more}: ${first}`, run }];
}

function ofAge(state: CollectionState, asked: Asked): Advice[] {
  const { isImported, maxAgeOf = '--max-age' } = asked;
  const stale = isStale(state, asked);
  const { collection, live } = state;
  const age = secondsSinceFound(state);
  const again = [`medref import ${collection}`];
  if (stale && age !== null) {
    const problem = `Upstream was last found as it is live ${ageText(age)}, longer than ${maxAgeOf} allows.`;
    return [{ problem, run: again }];
  }
  if (stale && live !== null) {
    return [{ problem: 'It is not known when upstream was last checked.', run: again }];
  }
  if (live === null && isImported && lastEnded(state) === undefined) {
    return [{ problem: `Nothing is live; ${urlSetting(collection)} was not imported yet.`, run: again }];
  }
  return [];
}

function ofLastImport(state: CollectionState): Advice[] {
  const { collection } = state;
  const last = lastEnded(state);
  if (last === undefined) return [];
  const rejects = last.rejected > 0 ? [`medref rejects ${collection}`] : [];
  if (last.outcome === 'failed') {
    return [{ problem: `The last import failed: ${last.reason}`, run: [`medref import ${collection}`] }];
  }
  if (last.outcome === 'refused') {
    const run = [...rejects, `medref import ${collection} --dry-run`];
    return [{ problem: `The last import was refused: ${last.reason}`, run }];
  }
  if (rejects.length === 0) return [];
  return [{ problem: `The last import rejected ${last.rejected} of ${last.read} records.`, run: rejects }];
}

function ofHold({ collection, hold }: CollectionState): Advice[] {
  if (hold === null) return [];
  const problem = `Scheduled imports are held since ${hold.since}, after a rollback to version ${hold.version}.`;
  return [{ problem, run: [`medref import ${collection} --dry-run`, `medref resume ${collection}`] }];
}

function ofClock({ warnings }: CollectionState): Advice[] {
  return warnings.map((problem) => ({ problem, run: [] }));
}

/** The last import that came to an end of its own. */
function lastEnded({ lastImports }: CollectionState) {
  return lastImports.find(({ outcome }) => outcome !== 'locked' && outcome !== 'held');
}

/** `null` if nothing is live, or all times are in the future. */
function secondsSinceFound({ checkedAt, live }: CollectionState): number | null {
  const foundAt = live && (checkedAt ?? knownTime(live.publishedAt));
  return foundAt === null ? null : Math.max(0, (Date.now() - Date.parse(foundAt)) / 1_000);
}
