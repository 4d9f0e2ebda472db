// In: the status of all collections. Out: tables that fit 80 columns, what is wrong, and what to run next.

import type { CollectionStatus } from '../../shared/advice.ts';
import { printable } from '../../shared/escapes.ts';
import { age, count } from '../../shared/figures.ts';
import { type Paint, paintFor, type Terminal } from '../colours.ts';
import { table, wrapped } from './output.ts';

/** A table cell of what there is none of. */
const none = '-';

/** The status for people. @param terminal where it is shown: on some there are colours */
export function statusText(
  warnings: readonly string[],
  collections: readonly CollectionStatus[],
  terminal: Terminal,
): string {
  const paint = paintFor(terminal);
  const alarming = (text: string) => text.replace(/\b(?:refused|failed)\b/g, (word) => paint('red', word));
  const paragraphs = [
    ...warnings.map((warning) => wrapped(printable(`warning: ${warning}`), '  ')),
    alarming(overview(collections)),
    ...collections.flatMap((status) => [...noted(status), ...problems(status, paint)]),
    ...collections.flatMap((status) => imports(status).map(alarming)),
  ];
  return paragraphs.join('\n\n');
}

function overview(collections: readonly CollectionStatus[]): string {
  return table(
    ['collection', 'version', 'age', 'records', 'upstream', 'last import'],
    collections.map(({ collection, derivedFrom, live, checkedAt, lastImports }) => [
      ...[collection, live ? String(live.version) : 'none live', live ? age(live.ageSeconds) : none],
      ...[live ? count(live.totalCount) : none, checkedAt === null ? none : agoOf(checkedAt)],
      derivedFrom === null ? (lastImports[0]?.outcome ?? none) : `as ${derivedFrom}`,
    ]),
  );
}

/** How long ago a time of ISO 8601 is. */
function agoOf(time: string): string {
  const seconds = Math.max(0, (Date.now() - Date.parse(time)) / 1_000);
  return seconds < 1 ? 'now' : `${age(seconds)} ago`;
}

/** What is no trouble, and good to know. */
function noted({ collection, derivedFrom, live, lock }: CollectionStatus): string[] {
  if (derivedFrom !== null) return [];
  return [
    ...(lock ? [`${collection}: ${lock.holder} imports since ${lock.since}.`] : []),
    ...(live?.forced ? [`${collection}: What is live was published past the checks, by --force.`] : []),
  ].map((sentence) => wrapped(printable(sentence), '  '));
}

/** A paragraph for each problem: the sentence, and the commands below it. */
function problems({ collection, advice }: CollectionStatus, paint: Paint): string[] {
  return advice.map(({ problem, run }) => {
    const sentence = wrapped(printable(`${collection}: ${problem}`), '  ');
    const named = paint('red', `${collection}:`) + sentence.slice(collection.length + 1);
    return [named, ...run.map((command) => `    ${paint('bold', command)}`)].join('\n');
  });
}

/** A table of the last imports, where there are any. */
function imports({ collection, derivedFrom, lastImports }: CollectionStatus): string[] {
  if (derivedFrom !== null || lastImports.length === 0) return [];
  return [
    table(
      [`imports of ${collection}`, 'outcome', 'version', 'read', 'rejected', ''],
      lastImports.map(({ endedAt, outcome, version, read, rejected, forced }) => [
        ...[endedAt.replace('T', ' ').replace(/\.\d+Z$/, 'Z'), outcome, String(version ?? none)],
        ...[count(read), count(rejected), forced ? 'forced' : ''],
      ]),
    ),
  ];
}
