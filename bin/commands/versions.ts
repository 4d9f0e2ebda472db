// The commands versions, rollback and diff.

import { once } from 'node:events';
import { type ChangedRecord, diffVersions, type VersionDiff } from '../../importer/diff.ts';
import { liftHold, type RolledBack, rollBack, VersionRequiredError } from '../../importer/rollback.ts';
import { createWebhook } from '../../importer/webhook.ts';
import { isPublishable, readCandidate } from '../../shared/candidates.ts';
import type { ServedCollection } from '../../shared/collections/define.ts';
import {
  byText,
  historyCap,
  type PastImport,
  publicationOf,
  readHistory,
} from '../../shared/import-history.ts';
import type { Redis } from '../../shared/redis/connections.ts';
import { type CollectionKeys, collectionKeys, servedKeys } from '../../shared/store/keys.ts';
import {
  contentOf,
  type LiveVersion,
  readKeptVersions,
  readLiveVersion,
  type Version,
  versionOf,
} from '../../shared/store/versions.ts';
import { count, escapeControls, escapeJson } from '../../shared/text.ts';
import { collectionNamed, importedCollectionNamed } from '../arguments.ts';
import { type CommandContext, exitCodes, LockedError, UsageError } from '../context.ts';
import { fitted, type OutputOptions, print, table, wrapped } from '../output.ts';
import { createLogger, operatorName, withRedis } from '../session.ts';

/** Prints the kept versions of a collection. @returns the exit code */
export async function versionsCommand(
  context: CommandContext,
  name: string,
  options: OutputOptions,
): Promise<number> {
  const served = collectionNamed(name);
  const { keys } = servedKeys(context.settings.keyPrefix, served);
  const [kept, live, history] = await withRedis(context.settings, (redis) =>
    Promise.all([
      readKeptVersions(redis, keys),
      readLiveVersion(redis, keys),
      readHistory(redis, keys, historyCap),
    ]),
  );
  const its = kept.map((version) => versionOf(served, version)).filter((version) => version !== null);
  const versions = its.reverse().map(({ version, content, publishedAt, totalCount, checksum }) => ({
    version,
    contentOf: contentOf({ content }),
    publishedAt,
    totalCount,
    checksum,
    live: version === live?.version,
  }));
  print(context, { versions }, options, () =>
    versions.length === 0
      ? `${name} has no versions.`
      : table(
          ['version', 'content of', 'published (UTC)', 'records', 'checksum', ''],
          versions.flatMap((it) => [
            [
              String(it.version),
              String(it.contentOf),
              it.publishedAt.slice(0, 16).replace('T', ' '),
              count(it.totalCount),
              it.checksum.slice(0, 12),
              it.live ? 'live' : '',
            ],
            ...whoLine(publicationOf(history, it.version)),
          ]),
        ),
  );
  return exitCodes.done;
}

/** Returns a row that says who rolled back to a version or forced it, and why, if that is known. */
function whoLine(publication: PastImport | undefined): string[][] {
  const isUnusual = publication?.outcome === 'rolled-back' || publication?.forced;
  const who = isUnusual && publication ? byText(publication) : '';
  return who === '' ? [] : [['', escapeControls(who)]];
}

/** Publishes the content of an earlier version again. @returns the exit code */
export async function rollbackCommand(
  context: CommandContext,
  name: string,
  {
    to,
    dryRun = false,
    reason: why,
    ...options
  }: OutputOptions & { to?: number; dryRun?: boolean; reason?: string },
): Promise<number> {
  const collection = importedCollectionNamed(name, 'rollback');
  const { settings } = context;
  const logger = createLogger(context).child({ by: operatorName(), collection: name });
  logger.info({ to: to ?? null, dryRun, why }, 'A rollback begins.');
  const result = await withRedis(settings, (redis) =>
    rollBack(collection, {
      ...{ redis, keyPrefix: settings.keyPrefix, to: to ?? null, dryRun },
      ...{ by: operatorName(), why },
    }),
  ).catch((error: Error) => {
    throw error instanceof VersionRequiredError ? new UsageError(error.message) : error;
  });
  const { outcome } = result;
  if (result.outcome === 'locked') {
    logger.info({ outcome }, 'The rollback has ended.');
    const { holder, since } = result.lock;
    throw new LockedError(`${holder} has held the lock of ${name} since ${since}. Try again later.`);
  }
  if (result.outcome === 'unchanged') {
    const { version } = result;
    logger.info({ outcome, version }, 'The rollback has ended.');
    print(context, { collection: name, outcome, version }, options, () =>
      wrapped(`${name}: version ${version} is live and already has that content; nothing was done`, '  ', ''),
    );
    return exitCodes.done;
  }
  const { report, contentOf, totalCount, previousTotalCount } = result;
  const { version, previousVersion, added, changed, removed, warnings } = report;
  logger.info({ outcome, version, previousVersion, contentOf }, 'The rollback has ended.');
  for (const warning of warnings) logger.warn(warning);
  const webhook = createWebhook(settings, logger);
  if (!dryRun) webhook.notify(report);
  const versions = { version, contentOf, previousVersion };
  const counts = { previousTotalCount, totalCount, added, changed, removed };
  print(context, { collection: name, outcome, ...versions, ...counts }, options, () =>
    rollbackText(name, result),
  );
  await webhook.finish();
  return exitCodes.done;
}

/** Returns both versions, the changes, and how to resume imports, as text. */
function rollbackText(
  name: string,
  { report, contentOf, totalCount, previousTotalCount }: RolledBack,
): string {
  const { version, previousVersion, added, changed, removed, warnings } = report;
  const diff = `${count(added)} added, ${count(changed)} changed, ${count(removed)} removed`;
  const from = `from ${previousVersion} (${count(previousTotalCount)} records)`;
  const to = `to the content of ${contentOf} (${count(totalCount)} records)`;
  const sentences =
    version === null
      ? [`dry run: would roll back ${from} ${to}: ${diff}. Nothing was changed.`]
      : [
          `rolled back ${from} ${to}, now served as ${version}: ${diff}.`,
          ...warnings.map((warning) => `warning: ${warning}`),
          `Scheduled imports are paused; "medref resume ${name}" resumes them.`,
        ];
  return sentences.map((sentence) => wrapped(`${name}: ${sentence}`, '  ', '')).join('\n');
}

/** Resumes the scheduled imports of a collection. @returns the exit code */
export async function resumeCommand(
  context: CommandContext,
  name: string,
  options: OutputOptions,
): Promise<number> {
  const keys = collectionKeys(context.settings.keyPrefix, importedCollectionNamed(name, 'resume'));
  const wasPaused = await withRedis(context.settings, (redis) => liftHold(redis, keys));
  createLogger(context).info(
    { by: operatorName(), collection: name, wasPaused },
    'Scheduled imports resumed.',
  );
  print(context, { collection: name, wasPaused }, options, () =>
    wasPaused ? `${name}: scheduled imports are resumed` : `${name}: scheduled imports were not paused`,
  );
  return exitCodes.done;
}

/** Prints the differences as they are found, in bounded memory. @returns the exit code */
export async function diffCommand(
  context: CommandContext,
  name: string,
  { all = false, ...options }: OutputOptions & DiffRange & { all?: boolean },
): Promise<number> {
  const served = collectionNamed(name);
  const { keys, part } = servedKeys(context.settings.keyPrefix, served);
  await withRedis(context.settings, async (redis) => {
    const { from, to } = await chooseVersions(redis, keys, { name, served, ...options });
    const diff = diffVersions(redis, part, from, to);
    if (options.json) await printJson(writer(context), diff, { from, to });
    else if (all) await printAll(writer(context), diff, { from, to });
    else await printSummary(context, diff, { from, to });
  });
  return exitCodes.done;
}

/** The versions that the operator names. */
interface DiffRange {
  readonly from?: number;
  readonly to?: number | 'candidate';
}

/** Two kept versions, or one and the candidate. */
interface Compared {
  readonly from: Version;
  readonly to: Version;
}

/** Returns the versions to compare: by default the live one, and the one before it; the candidate is compared with the live one. */
async function chooseVersions(
  redis: Redis,
  keys: CollectionKeys,
  asked: DiffRange & { name: string; served: ServedCollection },
): Promise<Compared> {
  const [kept, live] = await Promise.all([readKeptVersions(redis, keys), readLiveVersion(redis, keys)]);
  const numbers = kept.map(({ version }) => version).join(', ') || 'none';
  const keptVersion = (number: number) => {
    const found = kept.find(({ version }) => version === number);
    const its = found && versionOf(asked.served, found);
    if (its) return its;
    throw new Error(`Version ${number} of ${asked.name} is not kept. Kept versions: ${numbers}.`);
  };
  if (!live) throw new Error(`${asked.name} has no live version to compare.`);
  if (asked.to === 'candidate') {
    const from = keptVersion(asked.from ?? live.version);
    return { from, to: await candidateVersion(redis, keys, { ...asked, live }) };
  }
  const to = keptVersion(asked.to ?? live.version);
  if (asked.from !== undefined) return { from: keptVersion(asked.from), to };
  const before = kept.findLast(({ version }) => version < to.version);
  if (before) return { from: keptVersion(before.version), to };
  throw new Error(
    `No version of ${asked.name} before ${to.version} is kept. Choose one with --from. Kept: ${numbers}.`,
  );
}

/** Returns the candidate as a version. @throws Error if there is none, or its content was deleted with another publication */
async function candidateVersion(
  redis: Redis,
  keys: CollectionKeys,
  { name, served, live }: { name: string; served: ServedCollection; live: LiveVersion },
): Promise<Version> {
  const candidate = await readCandidate(redis, keys);
  const version = candidate && versionOf(served, candidate.version);
  if (!version) throw new Error(`${name} has no candidate.`);
  if (isPublishable(candidate, live)) return version;
  throw new Error(
    `The candidate ${version.version} of ${name} was compared with another version than the live one, ${live.version}. Its data is deleted.`,
  );
}

async function printJson(write: Write, diff: VersionDiff, { from, to }: Compared): Promise<void> {
  await write(`{"from":${from.version},"to":${to.version}`);
  for (const part of ['added', 'changed', 'removed'] as const) {
    await write(`,"${part}":[`);
    let separator = '';
    for await (const item of diff[part]()) {
      await write(separator + escapeJson(JSON.stringify(item)));
      separator = ',';
    }
    await write(']');
  }
  await write('}\n');
}

/** How many differences of each kind are printed without --all. */
const shownOfEach = 10;

/** Prints counts and changed members, then some differences of each kind. */
async function printSummary(
  context: CommandContext,
  diff: VersionDiff,
  { from, to }: Compared,
): Promise<void> {
  const write = writer(context);
  const lines: string[] = [];
  const fields = new Map<string, number>();
  const show = (total: number, ...its: string[]) => {
    if (total <= shownOfEach) lines.push(...its);
  };
  let [added, changed, removed] = [0, 0, 0];
  for await (const record of diff.added()) show(++added, `+ ${JSON.stringify(record)}`);
  for await (const it of diff.changed()) {
    show(++changed, ...changeLines(it));
    for (const field of it.fields) fields.set(field, (fields.get(field) ?? 0) + 1);
  }
  for await (const record of diff.removed()) show(++removed, `- ${JSON.stringify(record)}`);
  const isAll = Math.max(added, changed, removed) <= shownOfEach;
  const members = [...fields].sort(([, a], [, b]) => b - a);
  const text = [
    `From version ${from.version} to version ${to.version}`,
    `${count(added)} added, ${count(changed)} changed, ${count(removed)} removed`,
    ...members.map(([field, times]) => `  ${count(times)} × ${field}`),
    ...(isAll ? [] : [`The first ${shownOfEach} of each kind; --all prints all:`]),
    ...lines,
  ];
  for (const line of text) await write(`${fitted(context, escapeControls(line))}\n`);
}

/** Prints all differences as they are found. */
async function printAll(write: Write, diff: VersionDiff, { from, to }: Compared): Promise<void> {
  const writeLine = (line: string) => write(`${escapeControls(line)}\n`);
  await write(`From version ${from.version} to version ${to.version}\n`);
  for await (const record of diff.added()) await writeLine(`+ ${JSON.stringify(record)}`);
  for await (const it of diff.changed()) for (const line of changeLines(it)) await writeLine(line);
  for await (const record of diff.removed()) await writeLine(`- ${JSON.stringify(record)}`);
}

function changeLines({ id, fields, before, after }: ChangedRecord): string[] {
  return [`~ ${id} (${fields.join(', ')})`, `  - ${JSON.stringify(before)}`, `  + ${JSON.stringify(after)}`];
}

type Write = (text: string) => Promise<void>;

/** Writes to stdout, and waits for a slow reader, so that a large output is not buffered in memory. */
function writer({ stdout }: CommandContext): Write {
  return async (text) => {
    if (!stdout.write(text)) await once(stdout, 'drain');
  };
}
