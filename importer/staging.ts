// In: an import under its lock. Out: everything upstream has, staged as one version that readers do not see.

import { sweepStaged } from '../shared/versions.ts';
import type { ImportRun } from './import-run.ts';
import { readRecords, UpstreamChangedError } from './reader/record-reader.ts';
import type { Validators } from './upstream/terms.ts';
import { createUpstream } from './upstream/upstream.ts';
import { type StagedVersion, VersionWriter } from './version-writer.ts';

/** How often a walk starts again when upstream changes under it. */
const maxRestarts = 3;

/** What upstream had. */
export interface StagedFromUpstream {
  /** `null` where upstream says that nothing has changed since the validators it was sent. */
  readonly staged: StagedVersion | null;
  /** Of a list that is a single document. */
  readonly validators: Validators | null;
}

/**
 * Upstream → reader → validator → version writer; from the start again when upstream changes under the walk.
 * @param known validators of the live version, if upstream may be asked whether anything has changed
 */
export async function stageVersion(run: ImportRun, known: Validators | null): Promise<StagedFromUpstream> {
  for (let restarts = 0; ; restarts += 1) {
    try {
      return await stageOnce(run, known);
    } catch (error) {
      if (!(error instanceof UpstreamChangedError) || restarts === maxRestarts) throw error;
      const { logger } = run.context;
      logger.warn({ collection: run.collection.name, reason: error.message }, 'The walk starts again.');
    }
  }
}

async function stageOnce(run: ImportRun, known: Validators | null): Promise<StagedFromUpstream> {
  const { context } = run;
  const { url, token } = context.upstream;
  const signal = AbortSignal.any([run.lock.signal, ...(context.signal ? [context.signal] : [])]);
  const upstream = createUpstream({ token, signal, limits: context.upstreamLimits });
  try {
    const writer = await startVersion(run);
    const walk = readRecords({ url, upstream, validators: known });
    for (;;) {
      const { done, value } = await walk.next();
      signal.throwIfAborted();
      if (done) {
        run.report.warn(...value.warnings);
        if (value.notModified) return { staged: null, validators: known };
        const staged = await writer.finish();
        run.report.warn(...unknownMembers(staged), ...staged.warnings);
        return { staged, validators: value.validators };
      }
      await writer.write(value);
      context.onProgress?.(writer.counts.read);
    }
  } finally {
    await upstream.close();
  }
}

/** A writer for a new version, where nothing staged before is left. */
async function startVersion(run: ImportRun): Promise<VersionWriter> {
  const { collection, keys, lock, context } = run;
  await sweepStaged(context.redis, { keys, token: lock.token });
  const staging = await lock.stage(context.dryRun ? 'dry-run' : '');
  const writer = new VersionWriter(context.redis, staging, collection);
  run.staging = { ...staging, writer };
  return writer;
}

function unknownMembers(staged: StagedVersion): string[] {
  if (staged.unknownMembers.size === 0) return [];
  const list = [...staged.unknownMembers].map(([path, count]) => `${path} (${count} records)`).join(', ');
  return [`Unknown members were left out: ${list}.`];
}
