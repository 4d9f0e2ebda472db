// In: the bytes of a list, and the digest that a medref tells of it. Out: the same bytes; at their end, one sentence where
// they are not those that the digest is of.

import { createHash } from 'node:crypto';
import { UpstreamError } from './error.ts';

/** What is told of a list. */
interface Told {
  /** The list, as sentences name it. */
  readonly name: string;
  /** `Medref-Digest`; `null` where there is none. */
  readonly told: string | null;
}

/** Hands bytes on, and looks at the end whether they are those of the digest. @throws UpstreamError */
export async function* proven(
  source: AsyncIterable<Uint8Array>,
  { name, told }: Told,
): AsyncGenerator<Uint8Array> {
  const digest = listDigest(told);
  if (digest === null) return yield* source;
  const hash = createHash('sha256');
  for await (const chunk of source) {
    hash.update(chunk);
    yield chunk;
  }
  if (hash.digest('base64') === digest) return;
  throw new UpstreamError(
    `${name} sent another list than its Medref-Digest is of: it was changed on its way, or upstream holds it damaged. ` +
      'Import again later; where that does not help, run "medref verify" there.',
  );
}

/** The SHA-256 of all lines, in base64, as docs/CONSUMERS.md describes it. */
function listDigest(told: string | null): string | null {
  return /(?:^|[,\s])list=:([^:]*):/.exec(told ?? '')?.[1] ?? null;
}
