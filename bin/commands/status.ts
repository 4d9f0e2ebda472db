// The commands status and rejects.

import { settingWarnings } from '../../config/settings.ts';
import { diskWarnings } from '../../importer/durability.ts';
import { userWarnings } from '../../importer/server-warnings.ts';
import {
  type CollectionState,
  type CollectionStatus,
  evaluate,
  lastEnded,
  readCollectionStates,
} from '../../shared/collection-status.ts';
import { servedCollections } from '../../shared/collections/collections.ts';
import {
  byText,
  causeText,
  type LastRejects,
  type Reject,
  readLastRejects,
} from '../../shared/import-history.ts';
import { type ImporterState, importerProblem, readImporters } from '../../shared/importer-heartbeats.ts';
import type { Redis } from '../../shared/redis/connections.ts';
import { setupWarnings } from '../../shared/redis/server-setup.ts';
import type { StoredProgress } from '../../shared/store/import-locks.ts';
import { apiKeyKeys, collectionKeys } from '../../shared/store/keys.ts';
import { age, count, counted, escapeControls, shortTime } from '../../shared/text.ts';
import { importedCollectionNamed } from '../arguments.ts';
import { type CommandContext, exitCodes } from '../context.ts';
import {
  commandLines,
  fitted,
  type OutputOptions,
  type Paint,
  paintFor,
  print,
  table,
  wrapped,
} from '../output.ts';
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
  const { states, importers, ofRedis } = await withRedis(context.settings, async (redis) => {
    const found = await readCollectionStates({ redis, keyPrefix, served: servedCollections });
    return {
      importers: await readImporters(redis, keyPrefix),
      states: found,
      ofRedis: [
        ...(await emptyWarnings(redis, keyPrefix, found)),
        ...(await setupWarnings(redis, keyPrefix)),
        ...(await userWarnings(redis)),
        ...(await diskWarnings(redis)),
      ],
    };
  });
  const warnings = [...settingWarnings(context.settings), ...ofRedis];
  const collections = states.map((state) => {
    const isImported = upstreams.has(state.derivedFrom ?? state.collection);
    return evaluate(state, { maxAgeSeconds: maxAge, isImported });
  });
  const paint = paintFor(context.stdout);
  print(context, { warnings, importers, collections }, options, () =>
    statusText({ warnings, importers, collections }, paint),
  );
  return collections.some(({ stale }) => stale) ? exitCodes.failed : exitCodes.done;
}

/** Returns a warning if Redis has nothing of medref: it may have lost its data, or be another Redis. */
async function emptyWarnings(
  redis: Redis,
  keyPrefix: string,
  states: readonly CollectionState[],
): Promise<string[]> {
  if (states.some(({ live, lastImports }) => live !== null || lastImports.length > 0)) return [];
  // Some users may not read API keys.
  const count = await redis.hlen(apiKeyKeys(keyPrefix).keys).catch(() => null);
  if (count !== 0) return [];
  return [
    `This Redis has no versions and no API keys under the prefix ${keyPrefix}. If that is not a new installation, check REDIS_URL and KEY_PREFIX, or restore a backup: docs/REDIS.md.`,
  ];
}

interface Status {
  readonly warnings: readonly string[];
  readonly importers: readonly ImporterState[];
  readonly collections: readonly CollectionStatus[];
}

function statusText({ warnings, importers, collections }: Status, paint: Paint): string {
  const alarming = (text: string) => text.replace(/\b(?:refused|failed)\b/g, (word) => paint('red', word));
  const paragraphs = [
    ...warnings.map((warning) => wrapped(escapeControls(`warning: ${warning}`), '  ', '')),
    alarming(overview(collections)),
    ...importerText(importers, paint),
    ...collections.flatMap((status) => [...notes(status), ...problems(status, paint)]),
    ...collections.flatMap((status) => imports(status).map(alarming)),
  ];
  return paragraphs.join('\n\n');
}

/** Returns a paragraph about the importers that run, or about the last one. */
function importerText(importers: readonly ImporterState[], paint: Paint): string[] {
  const problem = importerProblem(importers);
  if (problem !== null)
    return [
      [
        paint('red', wrapped(escapeControls(problem), '  ', '')),
        ...commandLines([{ command: 'medref import', effect: 'imports what was missed' }], '    ', paint),
      ].join('\n'),
    ];
  return importers
    .filter(({ isAlive }) => isAlive)
    .map(({ importer, seenAt, nextRun }) =>
      wrapped(
        escapeControls(`Importer: ${importer}, seen ${timeSince(seenAt)}; next run ${shortTime(nextRun)}.`),
        '  ',
        '',
      ),
    );
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
      derivedFrom === null ? (lastEnded(lastImports)?.outcome ?? none) : `as ${derivedFrom}`,
    ]),
  );
}

/** Returns the time since a time of ISO 8601. */
function timeSince(time: string): string {
  const seconds = Math.max(0, (Date.now() - Date.parse(time)) / 1_000);
  return seconds < 1 ? 'now' : `${age(seconds)} ago`;
}

/** Returns facts that are no problem. */
function notes(status: CollectionStatus): string[] {
  const {
    collection,
    derivedFrom,
    live,
    lock,
    progress,
    despite,
    publishedBy: by,
    publishedWhy: why,
  } = status;
  if (derivedFrom !== null) return [];
  const who = byText({ by, why });
  const skipped = despite.length > 0 ? `: ${despite.join(', ')}` : '';
  return [
    ...(lock
      ? [
          `${collection}: ${lock.holder} is importing, since ${shortTime(lock.since)}${progressText(progress)}.`,
        ]
      : []),
    ...(live?.forced
      ? [
          `${collection}: Published in spite of its checks${who && ` ${who}`}${skipped}. Undo: medref rollback ${collection}`,
        ]
      : []),
  ].map((sentence) => wrapped(escapeControls(sentence), '  ', ''));
}

function progressText(progress: StoredProgress | null): string {
  if (!progress) return '';
  const share = progress.percent === null ? '' : `, ${progress.percent} %`;
  return `; ${counted(progress.read, 'record')} read${share}`;
}

/** Returns a paragraph for each problem: a sentence with its commands. */
function problems({ collection, advice }: CollectionStatus, paint: Paint): string[] {
  return advice.map(({ problem, details = [], run }) => {
    const sentence = wrapped(escapeControls(`${collection}: ${problem}`), '  ', '');
    const named = paint('red', `${collection}:`) + sentence.slice(collection.length + 1);
    const lines = details.map((line) => wrapped(escapeControls(line), '  '));
    return [named, ...lines, ...commandLines(run, '    ', paint)].join('\n');
  });
}

/** Returns a table of the last imports, if any. */
function imports({ collection, derivedFrom, lastImports }: CollectionStatus): string[] {
  if (derivedFrom !== null || lastImports.length === 0) return [];
  return [
    table(
      [`imports of ${collection}`, 'outcome', 'version', 'read', 'rejected', ''],
      lastImports.map(({ endedAt, outcome, version, read, rejected, forced }) => [
        shortTime(endedAt),
        outcome,
        String(version ?? none),
        count(read),
        count(rejected),
        forced ? 'forced' : '',
      ]),
    ),
  ];
}

/** How many rejects are printed without --all. */
const shownRejects = 10;

/** Prints the rejects of the last import: causes, then examples, or all. @returns the exit code */
export async function rejectsCommand(
  context: CommandContext,
  name: string,
  { all = false, ...options }: OutputOptions & { readonly all?: boolean },
): Promise<number> {
  const keys = collectionKeys(context.settings.keyPrefix, importedCollectionNamed(name, 'rejects'));
  const last = await withRedis(context.settings, (redis) => readLastRejects(redis, keys));
  const { total, rejects } = last;
  print(context, { total, rejects }, options, () =>
    all ? describe(name, last) : summary(context, name, { ...last, rejects: rejects.slice(0, shownRejects) }),
  );
  return exitCodes.done;
}

function describe(name: string, { total, endedAt, rejects }: LastRejects): string {
  if (endedAt === null) return `No import of ${name} has read records yet.`;
  const shown = rejects.length < total ? `, the first ${count(rejects.length)} of which are kept` : '';
  return [
    `The import of ${name} that ended ${shortTime(endedAt)} rejected ${counted(total, 'record')}${shown}.`,
    ...rejects.map(rejectLine),
  ].join('\n');
}

function summary(context: CommandContext, name: string, last: LastRejects): string {
  const { total, endedAt, causes, rejects } = last;
  if (endedAt === null || total === 0) return describe(name, last);
  const examples = rejects.map((it) => fitted(context, rejectLine(it)));
  return [
    `The import of ${name} that ended ${shortTime(endedAt)} rejected ${counted(total, 'record')}.`,
    ...causes.map((cause) => wrapped(escapeControls(causeText(cause)), '    ', '  ')),
    ...(rejects.length < total
      ? [`The first ${rejects.length}; "medref rejects ${name} --all" prints the others:`]
      : []),
    ...examples,
  ].join('\n');
}

function rejectLine({ position, path, reason, raw }: Reject): string {
  return escapeControls(`${position}: ${path} ${reason}: ${raw}`);
}
