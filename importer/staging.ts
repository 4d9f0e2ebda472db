// In: an import under its lock. Out: everything upstream has, staged as one version that readers do not see.

import { type LiveVersion, nextNumber, sweepStaged } from '../shared/versions.ts';
import type { ImportRun } from './import-run.ts';
import { readRecords, UpstreamChangedError } from './reader/record-reader.ts';
import { createValidator, idJsonPath } from './record-validator.ts';
import { createUpstream } from './upstream/upstream.ts';
import { type StagedVersion, VersionWriter } from './version-writer.ts';

/** How often a walk starts again when upstream changes under it. */
const maxRestarts = 3;

/** Upstream → reader → validator → version writer; from the start again when upstream changes under the walk. */
export async function stageVersion(run: ImportRun, live: LiveVersion | null): Promise<StagedVersion> {
  for (let restarts = 0; ; restarts += 1) {
    try {
      return await stageOnce(run, live);
    } catch (error) {
      if (!(error instanceof UpstreamChangedError) || restarts === maxRestarts) throw error;
      run.context.logger.warn(
        { collection: run.collection.name, reason: error.message },
        'The walk starts again.',
      );
    }
  }
}

async function stageOnce(run: ImportRun, live: LiveVersion | null): Promise<StagedVersion> {
  const { context } = run;
  const signal = AbortSignal.any([run.lock.signal, ...(context.signal ? [context.signal] : [])]);
  const { url, token } = context.upstream;
  const upstream = createUpstream({ token, signal, limits: context.upstreamLimits });
  try {
    const writer = await startVersion(run, live);
    const walk = readRecords({ url, upstream });
    for (;;) {
      const { done, value } = await walk.next();
      signal.throwIfAborted();
      if (done) {
        const staged = await writer.finish();
        run.report.note({ warnings: [...value.warnings, ...unknownMembers(staged)] });
        return staged;
      }
      await writer.write(value);
      context.onProgress?.(writer.counts.read);
    }
  } finally {
    await upstream.close();
  }
}

/** A writer for a new number, where nothing staged before is left. */
async function startVersion(run: ImportRun, live: LiveVersion | null): Promise<VersionWriter> {
  const { collection, keys, lock } = run;
  const { redis } = run.context;
  await sweepStaged(redis, keys);
  const number = await nextNumber(redis, keys);
  const validate = createValidator(collection);
  const writer = new VersionWriter({
    redis,
    keys,
    lock,
    number,
    live,
    validate,
    idPath: idJsonPath(collection),
  });
  run.staging = { number, writer };
  lock.stagesContent(number);
  return writer;
}

function unknownMembers(staged: StagedVersion): string[] {
  if (staged.unknownMembers.size === 0) return [];
  const list = [...staged.unknownMembers].map(([path, count]) => `${path} (${count} records)`).join(', ');
  return [`Unknown members were left out: ${list}.`];
}
