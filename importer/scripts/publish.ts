// publish.lua: a version goes live, in one step.

import type { Redis } from '../../shared/redis/connections.ts';
import { type ChangeSetFacts, changeSetText } from '../../shared/store/change-sets.ts';
import type { ContentName } from '../../shared/store/keys.ts';
import type { Conclusion } from './conclusion.ts';
import { type Held, LockLostError } from './held.ts';
import { changeSetKeys, contentKeys, workspaceKeys } from './key-lists.ts';
import { evaluate, loadScript } from './script.ts';

const script = loadScript('publish');

/** A staged version that could not be published; nothing of it was made visible. */
export class NotPublishedError extends Error {}

/** Redis has lost a part of what was staged, such as the last writes before a crash; staged again, it may stay. */
export class StagedLostError extends NotPublishedError {
  constructor() {
    super('Redis has lost a part of what was staged. Run it again.');
  }
}

/** How large a key must be. */
export interface KeySize {
  readonly key: string;
  readonly command: 'HLEN' | 'ZCARD';
  readonly size: number;
}

/** A version to be made live, with all that changes in the same step. */
export interface Publication {
  readonly number: number;
  /** What the content that it holds is stored under: its number, or for a rollback what a kept one is. */
  readonly stored: ContentName;
  /** JSON text of the version's document. */
  readonly document: string;
  /** JSON text of the live version's document that the caller compared with; `''` when there was none. */
  readonly expectedLive: string;
  /** Every key of the content with the command that measures it and the size that it must have. */
  readonly sizes: readonly KeySize[];
  /** What is let go: versions, contents that no kept version holds any more, change sets. */
  readonly leaving: {
    readonly versions: readonly number[];
    readonly contents: readonly ContentName[];
    readonly changeSets: readonly number[];
  };
  readonly graceMs: number;
  /**
   * What is known of the change set of each part, in their order; `null` where it was compared with nothing. It is kept
   * in the set, so that one that Redis has lost a part of is told from a smaller one.
   */
  readonly changes: readonly (ChangeSetFacts | null)[];
  /** JSON text of the hold that is set; `''` lifts it. */
  readonly hold: string;
  /** Checksum of the content that is rolled back from, and of one that is wanted again; `''` for none. */
  readonly undone: string;
  readonly redone: string;
  /** ISO 8601: when upstream was found to be as this version; `''` where it is not. */
  readonly checkedAt: string;
  /** JSON text of the upstream's validators; `''` for none. */
  readonly validators: string;
}

/**
 * Publishes a version in one step; may be repeated when a reply was lost.
 * @throws LockLostError; NotPublishedError when another version went live; StagedLostError when the content is not whole
 */
export async function publish(
  redis: Redis,
  { keys, token }: Held,
  { stored, sizes, changes, leaving, ...publication }: Publication,
  { rejects, ...entry }: Conclusion,
): Promise<void> {
  const { number } = publication;
  const workspace = stored === number ? workspaceKeys(keys, number) : [];
  const reply = await evaluate(
    redis,
    script,
    [
      ...[keys.lock, keys.live, keys.versions, keys.versionDocuments, keys.staged],
      ...[keys.imports, keys.rejects, keys.hold, keys.undone, keys.changeSets, keys.checked, keys.validators],
      ...[keys.next, keys.damaged],
      ...[...sizes.map(({ key }) => key), ...changeSetKeys(keys, number), ...workspace],
      ...leaving.contents.flatMap((leaves) => contentKeys(keys, leaves)),
      ...leaving.changeSets.flatMap((leaves) => changeSetKeys(keys, leaves)),
    ],
    [
      JSON.stringify({
        ...{ token, ...publication, ...entry, leaving, channel: keys.announcements },
        sizes: sizes.map(({ command, size }) => [command, size]),
        changes: changes.map((facts) => (facts ? [facts.size, changeSetText(facts)] : [-1, ''])),
        workspaceKeys: workspace.length,
      }),
      ...rejects,
    ],
  );
  requirePublished(reply as number);
}

/** What a script that makes something visible replied. @throws LockLostError, NotPublishedError, StagedLostError */
export function requirePublished(code: number): void {
  if (code === 1 || code === 2) return;
  if (code === -1) throw new LockLostError();
  if (code === -2) throw new NotPublishedError('Another version went live meanwhile. Run it again.');
  if (code === -3) throw new StagedLostError();
  throw new Error(`A script gave the unknown code ${code}.`);
}
