// In: what the proofs found. Out: the text of docs/RELIABILITY.md.

import { spawnSync } from 'node:child_process';
import { cpus } from 'node:os';
import { findRedisServer } from '../../bin/setup.mjs';

/** A table of the page. */
export interface Table {
  readonly head: readonly string[];
  readonly rows: readonly (readonly (string | number)[])[];
}

/** What one proof found. */
export interface Finding {
  /** What was done, and what is demanded. */
  readonly text: string;
  readonly tables: readonly Table[];
  /** What did not hold, in plain sentences; none when the proof held. */
  readonly faults: readonly string[];
}

/** A part of the page: what a proof found, under its heading. */
export interface Section extends Finding {
  readonly heading: string;
}

/** The whole page. @param command what makes it */
export function reliabilityPage(command: string, sections: readonly Section[]): string {
  const faults = sections.flatMap((section) => section.faults);
  const verdict =
    faults.length === 0 ? 'Everything held.' : `**${numberOf(faults.length, 'thing')} did not hold.**`;
  return [
    '# Reliability',
    '',
    'What medref promises for bad days, and what was seen of it when such days were made on purpose, with real processes',
    `and a real Redis. This page is written by \`${command}\` and by nothing else: run it, and it is made anew on your machine.`,
    `${verdict}`,
    '',
    markdown({ head: ['Date', 'CPUs', 'Node', 'Redis'], rows: [machine()] }),
    '',
    ...sections.map(sectionText),
  ].join('\n');
}

/** One section as Markdown. */
export function sectionText({ heading, text, tables, faults }: Section): string {
  const held = faults.length === 0 ? [] : [faults.map((fault) => `- **Did not hold:** ${fault}`).join('\n')];
  return `${[`## ${heading}`, text, ...held, ...tables.map(markdown)].join('\n\n')}\n`;
}

/** A number as people write it. */
export function inDigits(value: number, decimals = 0): string {
  return value.toLocaleString('en', { minimumFractionDigits: decimals, maximumFractionDigits: decimals });
}

/** `1 run`, `2 runs` */
export function numberOf(count: number, noun: string): string {
  return `${inDigits(count)} ${noun}${count === 1 ? '' : 's'}`;
}

function markdown({ head, rows }: Table): string {
  const lines = [head, head.map(() => '---'), ...rows];
  return lines.map((cells) => `| ${cells.map(cellText).join(' | ')} |`).join('\n');
}

/** A cell may hold anything that tests have in their titles. */
function cellText(cell: string | number): string {
  const text = typeof cell === 'number' ? inDigits(cell) : cell;
  return text.replace(/[*_|]/g, '\\$&').replaceAll('<', '&lt;').replaceAll('\n', ' ');
}

function machine(): string[] {
  const [first, ...others] = cpus();
  const processors = `${others.length + 1} × ${first?.model.trim() || process.arch}`;
  return [new Date().toISOString().slice(0, 10), processors, process.versions.node, redisVersion()];
}

function redisVersion(): string {
  const server = findRedisServer();
  if (server === undefined) return 'none';
  const { stdout } = spawnSync(server, ['--version'], { encoding: 'utf8' });
  return /v=([\d.]+)/.exec(stdout)?.[1] ?? 'unknown';
}
