// The output of commands: results on stdout, progress on stderr.

import type { Logger } from 'pino';
import type { ImportProgress } from '../importer/import.ts';
import type { NextCommand } from '../shared/collection-status.ts';
import { age, count, counted, escapeJson, truncate } from '../shared/text.ts';
import type { CommandContext } from './context.ts';

/** The option that every command accepts. */
export interface OutputOptions {
  readonly json?: boolean;
}

/** A result for programs, and its text for people. */
type Output = [result: unknown, options: OutputOptions, text: () => string];

/** Prints a result to stdout. */
export function print({ stdout }: Pick<CommandContext, 'stdout'>, ...output: Output): void {
  stdout.write(textOf(output));
}

/** Prints a result and waits until it is written. @throws Error if stdout fails */
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

/** Returns rows of text in aligned columns with a heading. The last cell of a row may be wider than its column. */
export function table(heading: readonly string[], rows: readonly (readonly string[])[]): string {
  const widths = heading.map((title, i) =>
    rows.reduce(
      (width, row) => Math.max(width, i === row.length - 1 ? 0 : (row[i] ?? '').length),
      title.length,
    ),
  );
  const line = (cells: readonly string[]) =>
    cells
      .map((cell, i) => cell.padEnd(widths[i] as number))
      .join('  ')
      .trimEnd();
  return [heading, ...rows].map(line).join('\n');
}

/** Cuts a line to the width of the terminal, if stdout is one. */
export function fitted({ stdout }: Pick<CommandContext, 'stdout'>, line: string): string {
  const width = stdout.isTTY ? (stdout.columns ?? Infinity) : Infinity;
  return line.length > width ? truncate(line, width - 1) : line;
}

/** Wraps a sentence at 80 columns. @param indent of all lines @param first of the first line */
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

/** Returns a line for each command: the command, and its effect in a column of its own if both fit. */
export function commandLines(
  run: readonly NextCommand[],
  indent: string,
  paint: Paint = (_rendition, text) => text,
): string[] {
  const width = run.reduce((most, { command }) => Math.max(most, command.length), 0);
  return run.flatMap(({ command, effect }) => {
    const line = `${indent}${paint('bold', command)}`;
    const gap = ''.padEnd(width - command.length + 3);
    if (indent.length + width + 3 + effect.length <= 80) return [`${line}${gap}${effect}`];
    return [line, wrapped(effect, `${indent}    `)];
  });
}

/** Select Graphic Rendition (ECMA-48, section 8.3.117): the codes that start and end each style. */
const renditions = { red: [31, 39], bold: [1, 22] } as const;

/** Styles text. */
export type Paint = (rendition: keyof typeof renditions, text: string) => string;

/** Returns a function that styles text if the stream is a terminal with colours. */
export function paintFor(stream: CommandContext['stdout']): Paint {
  if (!stream.isTTY || !stream.hasColors?.()) return (_rendition, text) => text;
  return (rendition, text) => {
    const [begin, end] = renditions[rendition];
    return `\x1b[${begin}m${text}\x1b[${end}m`;
  };
}

/** Shows progress. */
export interface Progress {
  show(progress: ImportProgress): void;
  /** Erases the line on the terminal. */
  clear(): void;
}

/** Where to show progress. */
export interface ProgressPlaces {
  readonly stderr: CommandContext['stderr'];
  readonly logger: Logger;
  /** The shortest time between two lines of the log, in ms. */
  readonly logEveryMs?: number;
}

/** The shortest time between two redraws on a terminal, in ms. */
const redrawMs = 100;

/** Erases the current line of a terminal. */
export const eraseLine = '\r\x1b[K';

/** Returns the progress display of one import. */
export function createProgress(
  collection: string,
  { stderr, logger, logEveryMs = 10_000 }: ProgressPlaces,
): Progress {
  const start = performance.now();
  let shownAt = start;
  const everyMs = stderr.isTTY ? redrawMs : logEveryMs;
  const write = (pace: Pace) => {
    // A longer line would wrap, and only its last row would be erased.
    if (stderr.isTTY)
      stderr.write(eraseLine + lineOf(collection, pace).slice(0, stderr.columns || undefined));
    else logger.info({ collection, ...pace }, 'Import in progress.');
  };
  return {
    show: (progress) => {
      const now = performance.now();
      if (now - shownAt < everyMs) return;
      shownAt = now;
      write(paceOf(progress, (now - start) / 1_000));
    },
    clear: () => {
      if (stderr.isTTY && shownAt > start) stderr.write(eraseLine);
    },
  };
}

/** The speed and the remaining time. */
interface Pace {
  readonly read: number;
  readonly perSecond: number;
  /** Absent if the length is unknown. */
  readonly percent?: number;
  readonly secondsLeft?: number;
}

function paceOf({ read, arrival }: ImportProgress, seconds: number): Pace {
  const pace = { read, perSecond: Math.round(read / seconds) };
  if (!arrival?.of) return pace;
  const share = arrival.bytes / arrival.of;
  return { ...pace, percent: Math.floor(share * 100), secondsLeft: Math.round(seconds / share - seconds) };
}

const barWidth = 20;

function lineOf(collection: string, { read, perSecond, percent, secondsLeft }: Pace): string {
  const numbers = `${counted(read, 'record')}, ${count(perSecond)}/s`;
  if (percent === undefined || secondsLeft === undefined) return `${collection}: ${numbers}`;
  const done = '='.repeat(Math.floor((percent * barWidth) / 100)).padEnd(barWidth);
  return `${collection}: [${done}] ${percent} %, ${numbers}, ${age(secondsLeft)} left`;
}
