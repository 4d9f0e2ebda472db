// How commands print: one JSON document with --json, else text for people.

import { printableJson } from '../../shared/escapes.ts';
import type { CommandContext } from '../surroundings.ts';

/** The option that every command takes. */
export interface OutputOptions {
  readonly json?: boolean;
}

/** Prints a result to stdout. */
export function print({ stdout }: Pick<CommandContext, 'stdout'>, ...output: Output): void {
  stdout.write(textOf(output));
}

/** Prints a result to stdout, and waits until it is written. @throws Error where it cannot be */
export async function printSafely(
  { stdout }: Pick<CommandContext, 'stdout'>,
  ...output: Output
): Promise<void> {
  await new Promise<void>((resolve, reject) => {
    stdout.write(textOf(output), (error) => (error ? reject(error) : resolve()));
  });
}

/** What text for people keeps to. */
const columns = 80;

type Output = [result: unknown, options: OutputOptions, text: () => string];

function textOf([result, { json }, text]: Output): string {
  return json ? `${printableJson(JSON.stringify(result))}\n` : `${text()}\n`;
}

/** Rows of text in aligned columns, under a heading. */
export function table(heading: readonly string[], rows: readonly (readonly string[])[]): string {
  const widths = heading.map((title, i) =>
    rows.reduce((width, row) => Math.max(width, (row[i] ?? '').length), title.length),
  );
  const line = (cells: readonly string[]) =>
    cells
      .map((cell, i) => cell.padEnd(widths[i] as number))
      .join('  ')
      .trimEnd();
  return [heading, ...rows].map(line).join('\n');
}

/** A sentence over as many lines as it takes in 80 columns; those after the first begin with an indent. */
export function wrapped(sentence: string, indent = ''): string {
  const lines: string[] = [];
  let line = '';
  for (const word of sentence.split(' ')) {
    if (line.trim() !== '' && line.length + 1 + word.length > columns) {
      lines.push(line);
      line = indent + word;
    } else line = line === '' ? word : `${line} ${word}`;
  }
  return [...lines, line].join('\n');
}
