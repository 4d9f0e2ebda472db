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

/** What a line begins with that tells what did not hold. */
const notHeld = '- **Did not hold:**';

/** The whole page. @param command what makes it. @param sections the texts of its parts, see {@link sectionText} */
export function reliabilityPage(command: string, sections: readonly string[]): string {
  const faults = sections.join('').split(`\n${notHeld}`).length - 1;
  const verdict = faults === 0 ? 'Everything held.' : `**${numberOf(faults, 'thing')} did not hold.**`;
  return [
    '# Reliability',
    '',
    'What medref promises for bad days, and what was seen of it when such days were made on purpose, with real processes',
    `and a real Redis. This page is written by \`${command}\` and by nothing else: run it, and it is made anew on your machine.`,
    `${verdict}`,
    '',
    ...sections,
  ].join('\n');
}

/** One section as Markdown, with when and on what it was found. */
export function sectionText({ heading, text, tables, faults }: Section): string {
  const held = faults.length === 0 ? [] : [faults.map((fault) => `${notHeld} ${fault}`).join('\n')];
  return `${[`## ${heading}`, `${machine()}.`, text, ...held, ...tables.map(markdown)].join('\n\n')}\n`;
}

/** A page whose section "What was seen" is of this proof now: where it was made, what did not hold, and its tables. */
export function withSeen(page: string, { heading, tables, faults }: Section): string {
  const text = `Written by \`npm run prove -- only=security\`; what was done is told by [RELIABILITY.md](RELIABILITY.md), "${heading}".`;
  const seen = sectionText({ heading: 'What was seen', text, tables, faults });
  const [before = '', after] = page.split(/^## What was seen\n/m) as [string, string?];
  if (after === undefined) throw new Error('The page has no section "What was seen".');
  const next = after.search(/^## /m);
  return before + seen + (next === -1 ? '' : `\n${after.slice(next)}`);
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

function machine(): string {
  const [first, ...others] = cpus();
  const processors = `${others.length + 1} × ${first?.model.trim() || process.arch}`;
  const date = new Date().toISOString().slice(0, 10);
  return `${date}, ${processors}, Node ${process.versions.node}, Redis ${redisVersion()}`;
}

function redisVersion(): string {
  const server = findRedisServer();
  if (server === undefined) return 'none';
  const { stdout } = spawnSync(server, ['--version'], { encoding: 'utf8' });
  return /v=([\d.]+)/.exec(stdout)?.[1] ?? 'unknown';
}
