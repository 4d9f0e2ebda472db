// conclude.lua: the end of an import that published nothing.

import type { Redis } from '../../shared/redis/connections.ts';
import type { ContentName } from '../../shared/store/keys.ts';
import type { Conclusion } from './conclusion.ts';
import { type Dropped, dropped } from './discard.ts';
import type { Held } from './held.ts';
import { stagedKeys } from './key-lists.ts';
import { evaluate, loadScript } from './script.ts';

const script = loadScript('conclude');

/** How an import ends that published nothing. */
export interface UnpublishedEnd {
  /** What was staged; `''` for nothing. */
  readonly name: ContentName | '';
  /** ISO 8601 when upstream was found to be as the live version; `''` when it was not. */
  readonly checkedAt: string;
  readonly validators: KeptValidators;
}

/** What becomes of the upstream's validators. */
export type KeptValidators =
  | { readonly kind: 'keep' | 'delete' }
  | { readonly kind: 'set'; readonly text: string };

/**
 * Ends an import that published nothing: drops what it staged, keeps its report and its rejects. May be repeated.
 * An import without the lock, whose token is `''`, only leaves its report.
 * @returns `'published'` when it had been published, by a reply that was lost; then nothing is done
 * @throws LockLostError
 */
export async function conclude(
  redis: Redis,
  { keys, token }: Held,
  { validators, ...end }: UnpublishedEnd,
  { rejects, ...entry }: Conclusion,
): Promise<Dropped> {
  const stored = { keep: 'keep', delete: '', set: 'text' in validators ? validators.text : '' }[
    validators.kind
  ];
  const reply = await evaluate(
    redis,
    script,
    [
      ...[keys.lock, keys.staged, keys.imports, keys.rejects, keys.checked, keys.validators, keys.versions],
      ...(end.name === '' ? [] : stagedKeys(keys, end.name)),
    ],
    [JSON.stringify({ token, ...end, ...entry, validators: stored }), ...rejects],
  );
  return dropped(reply);
}
