// What lets an upstream answer that nothing has changed: its validators, stored with the version they produced.

import { createHash } from 'node:crypto';
import type { LiveVersion } from '../../shared/versions.ts';
import type { Validators } from '../upstream/body.ts';
import type { ImportJob } from './import-job.ts';

/**
 * Grows when the same list makes another content: by the rules of records, what is derived, or what is stored with them.
 * Then the whole list is asked for again.
 */
const contentRevision = 3;

interface Stored extends Validators {
  /** SHA-256 of the URL they came from, which may hold a secret, and of what records were made of it then. */
  readonly source: string;
}

/**
 * The validators to send upstream, or `null` where the whole list is wanted: when nothing is live, when they are of
 * another URL, by force, and in a dry job. A refusal and a rollback delete them.
 */
export async function knownValidators(job: ImportJob, live: LiveVersion | null): Promise<Validators | null> {
  const { redis, force, dryRun, upstream } = job.context;
  if (!live || force || dryRun) return null;
  const text = await redis.get(job.keys.validators);
  if (text === null) return null;
  const { source, etag, lastModified } = JSON.parse(text) as Stored;
  return source === digest(upstream.url) ? { etag, lastModified } : null;
}

/** Validators as they are stored with a version; `null` where upstream gave none. */
export function storedValidators(job: ImportJob, validators: Validators | null): string | null {
  if (!validators?.etag && !validators?.lastModified) return null;
  const stored: Stored = { source: digest(job.context.upstream.url), ...validators };
  return JSON.stringify(stored);
}

function digest(url: URL): string {
  return createHash('sha256').update(`${contentRevision} ${url.href}`).digest('hex');
}
