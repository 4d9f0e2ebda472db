// Whether a list of pages stood still while it was walked, told by what came again, and by what the walk before found.

import { UpstreamChangedError } from '../parse/pages.ts';
import { recordCount } from '../parse/record-count.ts';
import { urlText } from '../upstream/error.ts';
import type { StagedVersion } from '../writing/version-writer.ts';
import type { ImportJob } from './import-job.ts';

/**
 * Asks for another walk where records came again on later pages, unless the walk before found the very same list: the same
 * records in the same order, and the same ones again at the same positions. Such a list is at rest and holds them twice.
 * @returns what to warn of. @throws UpstreamChangedError
 */
export function requireAtRest(job: ImportJob, { repeats, content }: StagedVersion): string[] {
  if (repeats === null) return [];
  const [before, again] = repeats.first;
  const found = `${content.checksum} ${repeats.digest}`;
  if (job.foundMoving === found) {
    return [
      `${recordCount(repeats.count)} came again on a later page, the first from position ${before} at position ${again}. ` +
        'Two walks found the same list, so that it holds them twice; the later ones are rejected as duplicates.',
    ];
  }
  job.foundMoving = found;
  throw new UpstreamChangedError(
    `${urlText(job.context.upstream.url)} changed during the walk: the record at position ${before} came again on a ` +
      `later page, at position ${again}. Import again later, or have upstream offer the list as one document.`,
  );
}
