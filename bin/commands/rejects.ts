// medref rejects: the records that a collection's last import rejected, and why.

import { escapeControls } from '../../shared/escapes.ts';
import { count, counted } from '../../shared/format.ts';
import { type LastRejects, readLastRejects } from '../../shared/last-rejects.ts';
import { collectionKeys } from '../../shared/store/keys.ts';
import { importedCollectionNamed } from '../arguments.ts';
import { type CommandContext, exitCodes, withRedis } from '../context.ts';
import { type OutputOptions, print } from '../output.ts';

/** Prints the rejects of a collection's last import. @returns the exit code */
export async function rejectsCommand(
  context: CommandContext,
  name: string,
  options: OutputOptions,
): Promise<number> {
  const keys = collectionKeys(context.settings.keyPrefix, importedCollectionNamed(name, 'rejects'));
  const last = await withRedis(context.settings, (redis) => readLastRejects(redis, keys));
  const { total, rejects } = last;
  print(context, { total, rejects }, options, () => describe(name, last));
  return exitCodes.done;
}

function describe(name: string, { total, endedAt, rejects }: LastRejects): string {
  if (endedAt === null) return `No import of ${name} has read anything yet.`;
  const shown = rejects.length < total ? `, the first ${count(rejects.length)} of which are kept` : '';
  const lines = rejects.map(({ position, path, reason, raw }) => `${position}: ${path} ${reason}: ${raw}`);
  return [
    `The import of ${name} that ended at ${endedAt} rejected ${counted(total, 'record')}${shown}.`,
    ...lines,
  ]
    .map(escapeControls)
    .join('\n');
}
