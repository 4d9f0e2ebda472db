// The commands publish and discard, for the candidate of a collection.

import {
  type CandidateContext,
  type CandidateResult,
  discardCandidate,
  publishCandidate,
} from '../../importer/candidate.ts';
import { type ImportResult, reportOf } from '../../importer/report.ts';
import { createWebhook } from '../../importer/webhook.ts';
import { diffText } from '../../shared/collection-status.ts';
import { counted, escapeControls } from '../../shared/text.ts';
import { importedCollectionNamed } from '../arguments.ts';
import { type CommandContext, exitCodes, LockedError } from '../context.ts';
import { type OutputOptions, print, wrapped } from '../output.ts';
import { createLogger, operatorName, withRedis } from '../session.ts';

/** The options of both commands. */
type CandidateOptions = OutputOptions & { readonly candidate?: number; readonly reason?: string };

/** Publishes the candidate of a collection. @returns the exit code */
export async function publishCommand(
  context: CommandContext,
  name: string,
  options: CandidateOptions,
): Promise<number> {
  const collection = importedCollectionNamed(name, 'publish');
  const logger = createLogger(context);
  const { keepVersions } = context.settings;
  return conclude(context, options, {
    name,
    run: (its) => publishCandidate(collection, { ...its, keepVersions, logger }),
    text: ({ version, previousVersion, written, despite, warnings, ...counts }) => [
      `published the candidate ${version} with ${counted(written, 'record')}` +
        `${previousVersion === null ? '' : `, ${diffText(counts)} compared with ${previousVersion}`}.`,
      ...(despite.length > 0 ? [`published despite: ${despite.join(', ')}`] : []),
      ...warnings.map((warning) => `warning: ${warning}`),
    ],
  });
}

/** Deletes the candidate of a collection. @returns the exit code */
export async function discardCommand(
  context: CommandContext,
  name: string,
  options: CandidateOptions,
): Promise<number> {
  const collection = importedCollectionNamed(name, 'discard');
  return conclude(context, options, {
    name,
    run: (its) => discardCandidate(collection, its),
    text: ({ reason }) => [`${reason} Readers notice nothing.`],
  });
}

/** Runs a command on a candidate, and reports its end to the log, to the webhook and on stdout. @returns the exit code */
async function conclude(
  context: CommandContext,
  {
    candidate: number = null,
    reason: why,
    ...options
  }: Omit<CandidateOptions, 'candidate'> & { candidate?: number | null },
  {
    name,
    run,
    text,
  }: {
    readonly name: string;
    readonly run: (its: CandidateContext) => Promise<CandidateResult>;
    /** Returns the sentences of a report. */
    readonly text: (report: ImportResult) => string[];
  },
): Promise<number> {
  const { settings } = context;
  const by = operatorName();
  const logger = createLogger(context).child({ by, collection: name });
  const result = await withRedis(settings, (redis) =>
    run({ redis, keyPrefix: settings.keyPrefix, number, by, why }),
  );
  if (result.outcome === 'locked') {
    const { holder, since } = result.lock;
    throw new LockedError(`${holder} has held the lock of ${name} since ${since}. Try again later.`);
  }
  const { report, outcome } = result;
  logger.info({ outcome, version: report.version, why, despite: report.despite }, `Candidate: ${outcome}.`);
  for (const warning of report.warnings) logger.warn(warning);
  const webhook = createWebhook(settings, logger);
  webhook.notify(report);
  print(context, reportOf(report), options, () =>
    text(report)
      .map((sentence) => wrapped(escapeControls(`${name}: ${sentence}`), '  ', ''))
      .join('\n'),
  );
  await webhook.finish();
  return exitCodes.done;
}
