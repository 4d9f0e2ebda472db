// How commands print: one JSON document with --json, else text for people.

import { printableJson } from '../escapes.ts';
import type { CommandContext } from '../surroundings.ts';

/** The option that every command takes. */
export interface OutputOptions {
  readonly json?: boolean;
}

/** Prints a result to stdout. */
export function print(
  { stdout }: Pick<CommandContext, 'stdout'>,
  result: unknown,
  { json }: OutputOptions,
  text: () => string,
): void {
  stdout.write(json ? `${printableJson(JSON.stringify(result))}\n` : `${text()}\n`);
}

/** Rows of text in aligned columns, under a heading. */
export function table(heading: readonly string[], rows: readonly (readonly string[])[]): string {
  const widths = heading.map((title, i) =>
    Math.max(title.length, ...rows.map((row) => (row[i] ?? '').length)),
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
