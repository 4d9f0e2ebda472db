// medref verify: checks all stored data against its checksums; --repair rebuilds it from intact records.

import { isDamaged, repair, type Verification, verify } from '../../importer/verify.ts';
import { importedCollections } from '../../shared/collections/collections.ts';
import type { Collection } from '../../shared/collections/define.ts';
import type { Redis } from '../../shared/redis/connections.ts';
import { collectionKeys } from '../../shared/store/keys.ts';
import { counted, escapeControls } from '../../shared/text.ts';
import { importedCollectionNamed } from '../arguments.ts';
import { type CommandContext, exitCodes, LockedError } from '../context.ts';
import { type OutputOptions, print, wrapped } from '../output.ts';
import { withRedis } from '../session.ts';

/** How many sentences about one damage are printed. */
const shownSentences = 3;

/** A damage: of bookkeeping keys, of the content of some versions, or of a change set. */
interface Damage {
  readonly what: 'keys' | 'content' | 'changes';
  readonly versions: readonly number[];
  readonly damage: readonly string[];
  /** Whether it was rebuilt; `false` without --repair. */
  readonly repaired: boolean;
}

interface VerifiedCollection {
  readonly collection: string;
  readonly versions: readonly number[];
  readonly records: number;
  readonly damaged: readonly Damage[];
  /** The actions of a repair, as sentences. */
  readonly done: readonly string[];
}

/** Verifies collections, and repairs them on request. @returns the exit code: 1 if damage remains */
export async function verifyCommand(
  context: CommandContext,
  names: readonly string[],
  { repair: isRepair = false, ...options }: OutputOptions & { readonly repair?: boolean },
): Promise<number> {
  const chosen = names.map((name) => importedCollectionNamed(name, 'verify'));
  const ends = await withRedis(context.settings, async (redis) => {
    const all: (VerifiedCollection | LockedError)[] = [];
    for (const collection of chosen.length > 0 ? new Set(chosen) : importedCollections) {
      const { keyPrefix } = context.settings;
      all.push(await (isRepair ? repairOne : verifyOne)(redis, keyPrefix, collection));
    }
    return all;
  });
  const verified = ends.filter((it): it is VerifiedCollection => !(it instanceof LockedError));
  const locked = ends.filter((it) => it instanceof LockedError);
  if (verified.length > 0 || options.json)
    print(context, { verified }, options, () => verified.map(describe).join('\n'));
  for (const { message } of locked) context.stderr.write(`${message}\n`);
  if (verified.some(({ damaged }) => damaged.some((it) => !it.repaired))) return exitCodes.failed;
  return locked.length > 0 ? exitCodes.locked : exitCodes.done;
}

async function verifyOne(
  redis: Redis,
  keyPrefix: string,
  collection: Collection,
): Promise<VerifiedCollection> {
  const found = await verify(redis, collectionKeys(keyPrefix, collection), collection);
  return { ...summary(collection, found), damaged: damageIn(found, () => false), done: [] };
}

/** Repairs a collection. @returns LockedError if another process has the lock */
async function repairOne(
  redis: Redis,
  keyPrefix: string,
  collection: Collection,
): Promise<VerifiedCollection | LockedError> {
  const result = await repair(collection, { redis, keyPrefix });
  if ('lock' in result) {
    const { holder, since } = result.lock;
    return new LockedError(
      `${holder} has held the lock of ${collection.name} since ${since}. Run the command again later.`,
    );
  }
  const left = new Set(damageIn(result.left, () => false).map(nameOf));
  const damaged = damageIn(result.found, (it) => !left.has(nameOf(it)));
  return { ...summary(collection, result.left), damaged, done: result.done };
}

function summary({ name }: Collection, { versions, records }: Verification) {
  return { collection: name, versions, records };
}

type Found = Omit<Damage, 'repaired'>;

function nameOf({ what, versions }: Found): string {
  return `${what} ${versions.join()}`;
}

function damageIn(found: Verification, isRepaired: (it: Found) => boolean): Damage[] {
  const numbers = (versions: readonly { readonly version: number }[]) =>
    versions.map(({ version }) => version);
  const all: Found[] = [
    { what: 'keys', versions: [], damage: found.keys },
    ...found.contents.map(
      ({ versions, damage }): Found => ({ what: 'content', versions: numbers(versions), damage }),
    ),
    ...found.changeSets.map(
      ({ version, damage }): Found => ({ what: 'changes', versions: [version], damage }),
    ),
  ];
  return (isDamaged(found) ? all : [])
    .filter(({ damage }) => damage.length > 0)
    .map((it) => ({ ...it, repaired: isRepaired(it) }));
}

function describe({ collection, versions, records, damaged, done }: VerifiedCollection): string {
  if (versions.length === 0 && damaged.length === 0) return `${collection}: nothing is stored`;
  const what = `${counted(versions.length, 'version')} with ${counted(records, 'record')}`;
  const left = damaged.filter(({ repaired }) => !repaired);
  const verdict = left.length > 0 ? 'damaged' : damaged.length > 0 ? 'repaired' : 'intact';
  const lines = damaged.flatMap(({ damage, repaired }) => [
    ...damage
      .slice(0, shownSentences)
      .map((sentence) => `${repaired ? 'was' : 'is'} damaged: ${escapeControls(sentence)}`),
    ...(damage.length > shownSentences ? [`and ${damage.length - shownSentences} more: see --json`] : []),
  ]);
  const repair = `"medref verify ${collection} --repair" rebuilds or deletes damaged versions.`;
  const next = left.length > 0 && done.length === 0 ? [repair] : [];
  return [
    `${collection}: ${what}: ${verdict}`,
    ...[...lines, ...done, ...next].map((it) => wrapped(it, '    ', '  ')),
  ].join('\n');
}
