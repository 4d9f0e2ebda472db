// How commands print: one JSON document with --json, else text for people.

import { printableJson } from '../escapes.ts';
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

/** A whole number with thousands separated. */
export function count(value: number): string {
  return value.toLocaleString('en');
}

/** A number of things: `1 record`, `2,000 records`. @param noun its plural is the noun with an s */
export function counted(value: number, noun: string): string {
  return `${count(value)} ${noun}${value === 1 ? '' : 's'}`;
}
