// replace-content.lua: a content that was made anew, in the place of a damaged one.

import type { Redis } from '../../shared/redis/connections.ts';
import type { ContentName } from '../../shared/store/keys.ts';
import { contentKeys } from '../../shared/store/keys.ts';
import type { BegunVersion } from '../../shared/store/scripts.ts';
import { type KeySize, requirePublished } from '../../shared/store/scripts.ts';
import { evaluate, loadScript } from './script.ts';

const script = loadScript('replace-content');

/** What takes the place of what. */
export interface Replacement {
  /** What the damaged content is stored under. */
  readonly was: ContentName;
  /** Of each version that holds it, its number and the JSON text of its document from now on. */
  readonly documents: readonly (readonly [number: number, document: string])[];
  /** JSON text of the live version's document from now on; `''` where another content is live. */
  readonly live: string;
  /** JSON text of the live version's document as it was read; `''` where another content is live. */
  readonly expectedLive: string;
  /** Every key of the content with the command that measures it and the size that it must have. */
  readonly sizes: readonly KeySize[];
  readonly graceMs: number;
}

/**
 * Puts what was staged in the place of a content, for all versions that hold it; may be repeated.
 * @throws LockLostError; NotPublishedError when another version went live; StagedLostError when the content is not whole
 */
export async function replaceContent(
  redis: Redis,
  { keys, token, name }: BegunVersion,
  { sizes, ...replacement }: Replacement,
): Promise<void> {
  const reply = await evaluate(
    redis,
    script,
    [
      ...[keys.lock, keys.live, keys.versionDocuments, keys.staged, keys.damaged],
      ...[...sizes.map(({ key }) => key), ...contentKeys(keys, replacement.was)],
    ],
    [
      JSON.stringify({
        ...{ token, name: String(name), channel: keys.announcements, ...replacement },
        ...{ was: String(replacement.was) },
        sizes: sizes.map(({ command, size }) => [command, size]),
        documents: replacement.documents.map(([number, document]) => [String(number), document]),
      }),
    ],
  );
  requirePublished(reply as number);
}
