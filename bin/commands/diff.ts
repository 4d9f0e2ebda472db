// medref diff: prints what differs between two kept versions of a collection, record by record.

import { once } from 'node:events';
import { diffVersions, type VersionDiff } from '../../importer/diff.ts';
import type { ServedCollection } from '../../shared/collections/define.ts';
import { escapeControls, escapeJson } from '../../shared/escapes.ts';
import { count } from '../../shared/format.ts';
import type { Redis } from '../../shared/redis/connections.ts';
import { type CollectionKeys, servedKeys } from '../../shared/store/keys.ts';
import { readKeptVersions, readLiveVersion, type Version, versionOf } from '../../shared/store/versions.ts';
import { collectionNamed } from '../arguments.ts';
import { type CommandContext, exitCodes, withRedis } from '../context.ts';
import type { OutputOptions } from '../output.ts';

/** Prints the difference as it is found, however large it is. @returns the exit code */
export async function diffCommand(
  context: CommandContext,
  name: string,
  options: OutputOptions & { from?: number; to?: number },
): Promise<number> {
  const served = collectionNamed(name);
  const { keys, part } = servedKeys(context.settings.keyPrefix, served);
  await withRedis(context.settings, async (redis) => {
    const { from, to } = await chooseVersions(redis, keys, { name, served, ...options });
    const diff = diffVersions(redis, part, from, to);
    if (options.json) await printJson(writer(context), diff, { from, to });
    else await printText(writer(context), diff, { from, to });
  });
  return exitCodes.done;
}

/** Two kept versions. */
interface Compared {
  readonly from: Version;
  readonly to: Version;
}

/** Returns the versions to compare: by default the live one, and the one kept before it. */
async function chooseVersions(
  redis: Redis,
  keys: CollectionKeys,
  asked: { name: string; served: ServedCollection; from?: number; to?: number },
): Promise<Compared> {
  const [kept, live] = await Promise.all([readKeptVersions(redis, keys), readLiveVersion(redis, keys)]);
  const numbers = kept.map(({ version }) => version).join(', ') || 'none';
  const keptVersion = (number: number) => {
    const found = kept.find(({ version }) => version === number);
    const its = found && versionOf(asked.served, found);
    if (its) return its;
    throw new Error(`Version ${number} of ${asked.name} is not kept; these are: ${numbers}.`);
  };
  if (!live) throw new Error(`Nothing of ${asked.name} is live, so there is nothing to compare.`);
  const to = keptVersion(asked.to ?? live.version);
  if (asked.from !== undefined) return { from: keptVersion(asked.from), to };
  const before = kept.findLast(({ version }) => version < to.version);
  if (before) return { from: keptVersion(before.version), to };
  throw new Error(
    `No version of ${asked.name} before version ${to.version} is kept; name one with --from. Kept: ${numbers}.`,
  );
}

async function printJson(write: Write, diff: VersionDiff, { from, to }: Compared): Promise<void> {
  await write(`{"from":${from.version},"to":${to.version}`);
  for (const part of ['added', 'changed', 'removed'] as const) {
    await write(`,"${part}":[`);
    let separator = '';
    for await (const item of diff[part]()) {
      await write(separator + escapeJson(JSON.stringify(item)));
      separator = ',';
    }
    await write(']');
  }
  await write('}\n');
}

async function printText(write: Write, diff: VersionDiff, { from, to }: Compared): Promise<void> {
  const writeLine = (line: string) => write(`${escapeControls(line)}\n`);
  await write(`From version ${from.version} to version ${to.version}\n`);
  const counts = { added: 0, changed: 0, removed: 0 };
  for await (const record of diff.added()) {
    counts.added += 1;
    await writeLine(`+ ${JSON.stringify(record)}`);
  }
  for await (const { id, fields, before, after } of diff.changed()) {
    counts.changed += 1;
    await writeLine(`~ ${id} (${fields.join(', ')})`);
    await writeLine(`  - ${JSON.stringify(before)}`);
    await writeLine(`  + ${JSON.stringify(after)}`);
  }
  for await (const record of diff.removed()) {
    counts.removed += 1;
    await writeLine(`- ${JSON.stringify(record)}`);
  }
  await write(
    `${count(counts.added)} added, ${count(counts.changed)} changed, ${count(counts.removed)} removed\n`,
  );
}

type Write = (text: string) => Promise<void>;

/** Writes to stdout, and waits for a slow reader, so that a large difference is not kept in memory. */
function writer({ stdout }: CommandContext): Write {
  return async (text) => {
    if (!stdout.write(text)) await once(stdout, 'drain');
  };
}
