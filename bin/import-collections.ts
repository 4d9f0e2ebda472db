// In: collections and a connection. Out: the reports of their imports, which went on one after the other.

import { importCollection } from '../importer/import.ts';
import { type ImportReport, startReport } from '../importer/report.ts';
import type { Webhook } from '../importer/webhook.ts';
import type { Collection } from '../shared/collections/define.ts';
import { urlSetting } from '../shared/collections/define.ts';
import type { Redis } from '../shared/redis/connections.ts';
import { UsageError } from './exit-codes.ts';
import type { Logger } from './logger.ts';
import { createProgress } from './progress.ts';
import type { CommandContext } from './surroundings.ts';

/** What is imported, and how. */
export interface Imports {
  readonly chosen: readonly Collection[];
  readonly redis: Redis;
  readonly logger: Logger;
  /** Told of each import but for dry runs. */
  readonly webhook: Webhook;
  /** Once it is aborted, the import under way ends, and no further one begins. */
  readonly signal: AbortSignal;
  readonly force?: boolean;
  readonly dryRun?: boolean;
  readonly scheduled?: boolean;
}

/** Imports collections one after the other. @throws UsageError for one without a URL */
export async function importCollections(
  { settings, stderr, lowerPriority }: CommandContext,
  { chosen, redis, logger, webhook, signal, force = false, dryRun = false, scheduled = false }: Imports,
): Promise<ImportReport[]> {
  const reports: ImportReport[] = [];
  const ended = (report: ImportReport) => {
    if (!dryRun) webhook.tell(report);
    reports.push(report);
  };
  lowerPriority();
  for (const collection of chosen) {
    const upstream = settings.upstreams.get(collection.name);
    if (!upstream)
      throw new UsageError(
        `${urlSetting(collection.name)} is not set, so ${collection.name} cannot be imported.`,
      );
    if (signal.aborted) {
      ended(startReport(collection.name).end('failed', { reason: 'It was stopped before it began.' }));
      continue;
    }
    const progress = createProgress(collection.name, { stderr, logger });
    const report = await importCollection(collection, {
      ...settings,
      ...{ redis, logger, signal, upstream, force, dryRun, scheduled, onProgress: progress.show },
    });
    progress.clear();
    logger[levelOf(report)](report, `Import of ${collection.name}: ${report.outcome}.`);
    ended(report);
  }
  return reports;
}

/** What an operator should look at is a warning. */
function levelOf({ outcome }: ImportReport): 'info' | 'warn' {
  return ['published', 'unchanged', 'dry-run'].includes(outcome) ? 'info' : 'warn';
}
