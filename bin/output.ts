// Prints results: one JSON document with --json, else text that fits 80 columns, with colours on a terminal.

import { escapeJson } from '../shared/escapes.ts';
import type { CommandContext } from './context.ts';

/** The option that every command accepts. */
export interface OutputOptions {
  readonly json?: boolean;
}

/** A result: for programs, and as text for people. */
type Output = [result: unknown, options: OutputOptions, text: () => string];

/** Prints a result to stdout. */
export function print({ stdout }: Pick<CommandContext, 'stdout'>, ...output: Output): void {
  stdout.write(textOf(output));
}

/** Prints a result to stdout, and waits until it is written. @throws Error if it cannot be written */
export async function printSafely(
  { stdout }: Pick<CommandContext, 'stdout'>,
  ...output: Output
): Promise<void> {
  await new Promise<void>((resolve, reject) => {
    stdout.write(textOf(output), (error) => (error ? reject(error) : resolve()));
  });
}

function textOf([result, { json }, text]: Output): string {
  return json ? `${escapeJson(JSON.stringify(result))}\n` : `${text()}\n`;
}

/** Returns rows of text in aligned columns, under a heading. */
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

/** Breaks a sentence into lines of 80 columns. @param indent of all lines @param first of the first line */
export function wrapped(sentence: string, indent = '', first = indent): string {
  const lines: string[] = [];
  let line = first;
  for (const word of sentence.split(' ')) {
    if (line.trim() !== '' && line.length + 1 + word.length > 80) {
      lines.push(line);
      line = indent + word;
    } else line += line.trim() === '' ? word : ` ${word}`;
  }
  return [...lines, line].join('\n');
}

/** Select Graphic Rendition (ECMA-48, section 8.3.117): the codes that begin and end each. */
const renditions = { red: [31, 39], bold: [1, 22] } as const;

/** Colours text. */
export type Paint = (rendition: keyof typeof renditions, text: string) => string;

/** Returns a function that colours text if a stream is a terminal with colours. */
export function paintFor(stream: CommandContext['stdout']): Paint {
  if (!stream.isTTY || !stream.hasColors?.()) return (_rendition, text) => text;
  return (rendition, text) => {
    const [begin, end] = renditions[rendition];
    return `\x1b[${begin}m${text}\x1b[${end}m`;
  };
}
