// A Lua script of this folder by its name, and how Redis runs it.

import { readFileSync } from 'node:fs';
import type { Redis } from '../../shared/redis/connections.ts';
import { runText, type Script } from '../../shared/store/scripts.ts';

/** Reads a script that lies beside this file. @param name without `.lua` */
export function loadScript(name: string): Script {
  return { name, text: readFileSync(new URL(`./${name}.lua`, import.meta.url), 'utf8') };
}

/** Runs a script. */
export function evaluate(
  redis: Redis,
  script: Script,
  keys: readonly string[],
  args: readonly (string | number | Buffer)[],
): Promise<unknown> {
  return runText(redis, script, keys, args);
}
