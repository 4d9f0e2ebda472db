// In: the arguments of `npm run prove`. Out: which proofs, how many kills of the whole list, the seed of what is random, and how
// Redis is set up.

import { serverKnowsWaitaof } from '../support/redis-server.ts';

/** What the command is asked for. */
export interface Choice {
  /** At how many random points imports of the real list are killed. */
  readonly kills: number;
  readonly only: readonly string[] | null;
  /** Of random mirrors. */
  readonly seed: number;
  /** When Redis flushes its append-only file, in the proofs of what stays of it. */
  readonly fsync: Fsync;
}

/** The set-ups of which one is advised, by the version of Redis. */
export type Fsync = 'always' | 'everysec';

/** The arguments cannot mean anything as they were given. */
export class WrongArgument extends Error {}

/** Reads the arguments. @param names of the proofs. @throws WrongArgument with a sentence that says what it takes */
export function parseChoice(args: readonly string[], names: readonly string[]): Choice {
  const usage = `It takes kills=<1 to 100000>, seed=<1 to 99999>, fsync=<always or everysec> and only=<of ${names.join(',')}>, each once at most.`;
  const given = new Map<string, string>();
  // Also as "--only security", which is how most commands take it.
  const words = args.join('\n').replace(/^--(kills|only|seed|fsync)[\n=]/gm, '$1=');
  for (const arg of args.length === 0 ? [] : words.split('\n')) {
    const [, name = '', value = ''] = /^(kills|only|seed|fsync)=(.+)$/.exec(arg) ?? [];
    if (name === '' || given.has(name)) throw new WrongArgument(`"${arg}" is not understood. ${usage}`);
    given.set(name, value);
  }
  const kills = given.get('kills') ?? '300';
  if (!/^[1-9]\d{0,4}$|^100000$/.test(kills))
    throw new WrongArgument(`kills=${kills} is not a count. ${usage}`);
  const seed = given.get('seed') ?? String(1 + Math.floor(Math.random() * 99_999));
  if (!/^[1-9]\d{0,4}$/.test(seed)) throw new WrongArgument(`seed=${seed} is not a seed. ${usage}`);
  const only = given.get('only')?.split(',') ?? null;
  const unknown = only?.find((name) => !names.includes(name));
  if (unknown !== undefined) throw new WrongArgument(`There is no proof "${unknown}". ${usage}`);
  const fsync = given.get('fsync') ?? (serverKnowsWaitaof() ? 'everysec' : 'always');
  if (fsync !== 'always' && fsync !== 'everysec')
    throw new WrongArgument(`fsync=${fsync} is not a set-up. ${usage}`);
  return { kills: Number(kills), only, seed: Number(seed), fsync };
}
