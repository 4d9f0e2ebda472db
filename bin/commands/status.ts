// The commands status and rejects.

import { settingWarnings } from '../../config/settings.ts';
import { diskWarnings } from '../../importer/durability.ts';
import { userWarnings } from '../../importer/server-warnings.ts';
import { type CollectionStatus, evaluate, readCollectionStates } from '../../shared/collection-status.ts';
import { servedCollections } from '../../shared/collections/collections.ts';
import { type LastRejects, readLastRejects } from '../../shared/import-history.ts';
import { setupWarnings } from '../../shared/redis/server-setup.ts';
import { collectionKeys } from '../../shared/store/keys.ts';
import { age, count, counted, escapeControls } from '../../shared/text.ts';
import { importedCollectionNamed } from '../arguments.ts';
import { type CommandContext, exitCodes } from '../context.ts';
import { type OutputOptions, type Paint, paintFor, print, table, wrapped } from '../output.ts';
import { withRedis } from '../session.ts';

/** A table cell without a value. */
const none = '-';

/**
 * Prints the state of every collection, and warnings about the settings and Redis.
 * @returns the exit code: 1 if the last successful upstream check is older than `maxAge`, in seconds
 */
export async function statusCommand(
  context: CommandContext,
  { maxAge = null, ...options }: OutputOptions & { readonly maxAge?: number | null },
): Promise<number> {
  const { keyPrefix, upstreams } = context.settings;
  const { states, ofRedis } = await withRedis(context.settings, async (redis) => ({
    states: await readCollectionStates({ redis, keyPrefix, served: servedCollections }),
    ofRedis: [
      ...(await setupWarnings(redis, keyPrefix)),
      ...(await userWarnings(redis)),
      ...(await diskWarnings(redis)),
    ],
  }));
  const warnings = [...settingWarnings(context.settings), ...ofRedis];
  const collections = states.map((state) => {
    const isImported = upstreams.has(state.derivedFrom ?? state.collection);
    return evaluate(state, { maxAgeSeconds: maxAge, isImported });
  });
  const paint = paintFor(context.stdout);
  print(context, { warnings, collections }, options, () => statusText(warnings, collections, paint));
  return collections.some(({ stale }) => stale) ? exitCodes.failed : exitCodes.done;
}

function statusText(
  warnings: readonly string[],
  collections: readonly CollectionStatus[],
  paint: Paint,
): string {
  const alarming = (text: string) => text.replace(/\b(?:refused|failed)\b/g, (word) => paint('red', word));
  const paragraphs = [
    ...warnings.map((warning) => wrapped(escapeControls(`warning: ${warning}`), '  ', '')),
    alarming(overview(collections)),
    ...collections.flatMap((status) => [...notes(status), ...problems(status, paint)]),
    ...collections.flatMap((status) => imports(status).map(alarming)),
  ];
  return paragraphs.join('\n\n');
}

function overview(collections: readonly CollectionStatus[]): string {
  return table(
    ['collection', 'version', 'age', 'records', 'upstream', 'last import'],
    collections.map(({ collection, derivedFrom, live, checkedAt, lastImports }) => [
      collection,
      live ? String(live.version) : 'none live',
      live ? age(live.ageSeconds) : none,
      live ? count(live.totalCount) : none,
      checkedAt === null ? none : timeSince(checkedAt),
      derivedFrom === null ? (lastImports[0]?.outcome ?? none) : `as ${derivedFrom}`,
    ]),
  );
}

/** Returns the time since a time of ISO 8601. */
function timeSince(time: string): string {
  const seconds = Math.max(0, (Date.now() - Date.parse(time)) / 1_000);
  return seconds < 1 ? 'now' : `${age(seconds)} ago`;
}

/** Returns facts that are no problem. */
function notes({ collection, derivedFrom, live, lock }: CollectionStatus): string[] {
  if (derivedFrom !== null) return [];
  return [
    ...(lock ? [`${collection}: ${lock.holder} imports since ${lock.since}.`] : []),
    ...(live?.forced ? [`${collection}: Published with --force. Undo: medref rollback ${collection}`] : []),
  ].map((sentence) => wrapped(escapeControls(sentence), '  ', ''));
}

/** Returns a paragraph for each problem: a sentence with its commands. */
function problems({ collection, advice }: CollectionStatus, paint: Paint): string[] {
  return advice.map(({ problem, run }) => {
    const sentence = wrapped(escapeControls(`${collection}: ${problem}`), '  ', '');
    const named = paint('red', `${collection}:`) + sentence.slice(collection.length + 1);
    return [named, ...run.map((command) => `    ${paint('bold', command)}`)].join('\n');
  });
}

/** Returns a table of the last imports, if any. */
function imports({ collection, derivedFrom, lastImports }: CollectionStatus): string[] {
  if (derivedFrom !== null || lastImports.length === 0) return [];
  return [
    table(
      [`imports of ${collection}`, 'outcome', 'version', 'read', 'rejected', ''],
      lastImports.map(({ endedAt, outcome, version, read, rejected, forced }) => [
        endedAt.replace('T', ' ').replace(/\.\d+Z$/, 'Z'),
        outcome,
        String(version ?? none),
        count(read),
        count(rejected),
        forced ? 'forced' : '',
      ]),
    ),
  ];
}

/** Prints the rejects of the last import. @returns the exit code */
export async function rejectsCommand(
  context: CommandContext,
  name: string,
  options: OutputOptions,
): Promise<number> {
  const keys = collectionKeys(context.settings.keyPrefix, importedCollectionNamed(name, 'rejects'));
  const last = await withRedis(context.settings, (redis) => readLastRejects(redis, keys));
  const { total, rejects } = last;
  print(context, { total, rejects }, options, () => describe(name, last));
  return exitCodes.done;
}

function describe(name: string, { total, endedAt, rejects }: LastRejects): string {
  if (endedAt === null) return `No import of ${name} has read records yet.`;
  const shown = rejects.length < total ? `, the first ${count(rejects.length)} of which are kept` : '';
  const lines = rejects.map(({ position, path, reason, raw }) => `${position}: ${path} ${reason}: ${raw}`);
  return [
    `The import of ${name} that ended at ${endedAt} rejected ${counted(total, 'record')}${shown}.`,
    ...lines,
  ]
    .map(escapeControls)
    .join('\n');
}
