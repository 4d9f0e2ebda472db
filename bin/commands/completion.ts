// medref completion: a script by which a shell completes commands, options and collections.

import { type CommandOutline, completionScript, type Shell, shells } from '../completion.ts';
import { exitCodes, UsageError } from '../exit-codes.ts';
import type { CommandContext } from '../surroundings.ts';
import { type OutputOptions, print } from './output.ts';

/** Prints the script of a shell. @returns the exit code. @throws UsageError for a shell that there is none for */
export async function completionCommand(
  context: CommandContext,
  name: string,
  { outlines, ...options }: OutputOptions & { readonly outlines: readonly CommandOutline[] },
): Promise<number> {
  const shell = shells.find((it) => it === name);
  if (shell === undefined) {
    throw new UsageError(
      `There is no completion for ${JSON.stringify(name)}; there is one for ${shells.join(', ')}.`,
    );
  }
  const script = completionScript(shell satisfies Shell, outlines);
  print(context, { shell, script }, options, () => script.trimEnd());
  return exitCodes.done;
}
