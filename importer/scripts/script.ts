// A Lua script of this folder by its name, and how Redis runs it.

import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import type { Redis } from '../../shared/redis/connections.ts';

/** A script as Redis knows it: by the digest of its text. */
export interface Script {
  readonly text: string;
  readonly sha: string;
}

/** Reads a script that lies beside this file. @param name without `.lua` */
export function loadScript(name: string): Script {
  const text = readFileSync(new URL(`./${name}.lua`, import.meta.url), 'utf8');
  return { text, sha: createHash('sha1').update(text).digest('hex') };
}

/**
 * Runs a script by its digest, and sends its text only where Redis does not have it.
 * @returns its reply, as the header of the script says; throws whatever Redis answers with
 */
export async function evaluate(
  redis: Redis,
  script: Script,
  keys: readonly string[],
  args: readonly (string | number | Buffer)[],
): Promise<unknown> {
  try {
    return await redis.evalsha(script.sha, keys.length, ...keys, ...args);
  } catch (error) {
    if (!(error as Error).message.startsWith('NOSCRIPT')) throw error;
    return redis.eval(script.text, keys.length, ...keys, ...args);
  }
}
