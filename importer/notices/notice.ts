// In: the report of an import or a rollback. Out: what a webhook is told of it, or nothing where it concerns nobody.

import { randomUUID } from 'node:crypto';
import type { ImportOutcome, ImportReport } from '../job/import-report.ts';

/** What is told: a publication, also by a rollback; a refusal; a failure. */
export type NoticeEvent = 'published' | 'refused' | 'failed';

/** What a webhook is sent, in this order of members. */
export interface Notice {
  /** The same at each try, so that whoever receives it can tell that it came before. */
  readonly id: string;
  readonly event: NoticeEvent;
  readonly collection: string;
  /** The version that was published; `null` where none was. */
  readonly version: number | null;
  /** When it happened, ISO 8601. */
  readonly time: string;
  readonly report: ImportReport;
}

const events: Partial<Record<ImportOutcome, NoticeEvent>> = {
  published: 'published',
  'rolled-back': 'published',
  refused: 'refused',
  failed: 'failed',
};

/** The notice of what has just ended; `null` for what changed nothing and needs nobody. */
export function noticeOf(report: ImportReport): Notice | null {
  const event = events[report.outcome];
  if (event === undefined) return null;
  const { collection, version } = report;
  return { id: randomUUID(), event, collection, version, time: new Date().toISOString(), report };
}
