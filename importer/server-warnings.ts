// In: a Redis server. Out: what is wrong with how it is set up, as sentences.

import type { Redis } from '../shared/redis/connections.ts';
import { RedisUnavailableError } from '../shared/redis/failures.ts';

/** The oldest Redis that knows every command we send. */
const oldestVersion = [6, 2] as const;

/**
 * What is wrong with how a server is set up, as sentences; what can be mended at once is mended.
 * @throws RedisUnavailableError when it is older than Redis 6.2
 */
export async function serverWarnings(redis: Redis): Promise<string[]> {
  const info = await redis.info('server', 'memory').catch((error: Error) => {
    if (error.message.startsWith('NOPERM')) return null;
    throw error;
  });
  if (info === null) return ['The Redis user may not run INFO, so version and eviction were not checked.'];
  const version = /^redis_version:(.+)$/m.exec(info)?.[1]?.trim() ?? 'unknown';
  const [major = 0, minor = 0] = version.split('.').map(Number);
  if (major < oldestVersion[0] || (major === oldestVersion[0] && minor < oldestVersion[1])) {
    throw new RedisUnavailableError(
      `This Redis is version ${version}; medref needs 6.2 or newer, or Valkey.`,
    );
  }
  const warnings = await letExpiryRunAside(redis);
  const policy = /^maxmemory_policy:(.+)$/m.exec(info)?.[1]?.trim();
  if (policy === undefined || policy === 'noeviction') return warnings;
  return [
    ...warnings,
    `Redis may evict keys that are live (maxmemory-policy ${policy}); set it to noeviction.`,
  ];
}

/**
 * Turns `lazyfree-lazy-expire` on where the user may: a large content that expires would stop Redis for as long as it
 * takes to free it, some 0.3 s for a million records, and does so aside with this.
 * @returns what is wrong, as sentences, where it may not
 */
async function letExpiryRunAside(redis: Redis): Promise<string[]> {
  const name = 'lazyfree-lazy-expire';
  try {
    const [, value] = (await redis.config('GET', name)) as string[];
    if (value === 'no') await redis.config('SET', name, 'yes');
    return [];
  } catch (error) {
    if ((error as Error).name !== 'ReplyError') throw error;
    return [
      `The Redis user may not set ${name}; see that it is on, or large contents stop Redis as they expire.`,
    ];
  }
}
