// In: the arguments of the command. Out: what to measure and how often, or a sentence that says what is wrong with them.

import { parseArgs } from 'node:util';

/** The groups of rows, in the order in which they are measured. */
export const groupNames = [
  'serving',
  'workers',
  'scale',
  'walk',
  'latency',
  'import',
  'memory',
  'size',
] as const;
export type GroupName = (typeof groupNames)[number];

export interface BenchOptions {
  /** Shows that everything works: short, small, its figures mean nothing. */
  readonly quick: boolean;
  readonly rounds: number;
  readonly groups: readonly GroupName[];
}

/** The arguments cannot be understood. */
export class ArgumentError extends Error {}

const usage = `bench takes --quick, --rounds <1 to 99>, and --only <${groupNames.join('|')}>`;

/** Reads the arguments. @throws ArgumentError */
export function readOptions(args: readonly string[]): BenchOptions {
  const { quick = false, rounds, only } = parse(args);
  if (rounds !== undefined && !/^[1-9][0-9]?$/.test(rounds))
    throw new ArgumentError(`--rounds ${rounds} is no number from 1 to 99: ${usage}.`);
  for (const name of only ?? []) {
    if (!groupNames.some((known) => known === name))
      throw new ArgumentError(`--only ${name} is no group of rows: ${usage}.`);
  }
  return {
    quick,
    rounds: rounds === undefined ? (quick ? 1 : 7) : Number(rounds),
    groups: only === undefined ? groupNames : groupNames.filter((name) => only.includes(name)),
  };
}

function parse(args: readonly string[]) {
  try {
    const options = {
      quick: { type: 'boolean' },
      rounds: { type: 'string' },
      only: { type: 'string', multiple: true },
    } as const;
    return parseArgs({ args: [...args], options, strict: true, allowPositionals: false }).values;
  } catch (error) {
    throw new ArgumentError(`${(error as Error).message.replace(/\.$/, '').split('. ')[0]}: ${usage}.`);
  }
}
