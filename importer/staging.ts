// In: an import under its lock. Out: everything upstream has, staged as one version that readers do not see.

import { StagedLostError } from '../shared/scripts.ts';
import { isWhole, sweepStaged } from '../shared/versions.ts';
import { type ImportRun, stagingOf } from './import-run.ts';
import { readRecords } from './reader/record-reader.ts';
import type { Validators } from './upstream/terms.ts';
import { createUpstream } from './upstream/upstream.ts';
import { type StagedVersion, VersionWriter } from './version-writer.ts';

/** What upstream had. */
export interface StagedFromUpstream {
  /** `null` where upstream says that nothing has changed since the validators it was sent. */
  readonly staged: StagedVersion | null;
  /** Of a list that is a single document. */
  readonly validators: Validators | null;
}

/**
 * Upstream → reader → validator → version writer.
 * @param known validators of the live version, if upstream may be asked whether anything has changed
 * @throws UpstreamChangedError when upstream changed under the walk; StagedLostError
 */
export async function stageVersion(run: ImportRun, known: Validators | null): Promise<StagedFromUpstream> {
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
        await checkStaged(run, staged);
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

/** What Redis has lost would look like records that upstream has lost. @throws StagedLostError */
async function checkStaged(run: ImportRun, { content, derived }: StagedVersion): Promise<void> {
  const { redis } = run.context;
  if (await isWhole(redis, run.keys, { content: stagingOf(run).name, ...content, derived })) return;
  throw new StagedLostError();
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
