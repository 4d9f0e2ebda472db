// In: Redis servers. Out: what is wrong with how they are set up, as sentences.

import { mastersOf, type Redis } from '../shared/redis/connections.ts';
import { RedisUnavailableError } from '../shared/redis/failures.ts';

type Server = ReturnType<typeof mastersOf>[number];

/** The oldest Redis that knows every command we send. */
const oldestVersion = [6, 2] as const;

/**
 * What is wrong with how the servers are set up, as sentences; what can be mended at once is mended.
 * @throws RedisUnavailableError when one is older than Redis 6.2
 */
export async function serverWarnings(redis: Redis): Promise<string[]> {
  const masters = mastersOf(redis);
  const warnings = await Promise.all(
    masters.map(async (server) => {
      const { host, port } = server.options;
      const where = masters.length === 1 ? '' : ` This is of ${host}:${port}.`;
      return (await warningsOf(server)).map((warning) => warning + where);
    }),
  );
  return warnings.flat();
}

async function warningsOf(server: Server): Promise<string[]> {
  const info = await server.info('server', 'memory').catch((error: Error) => {
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
  const warnings = await letExpiryRunAside(server);
  const policy = /^maxmemory_policy:(.+)$/m.exec(info)?.[1]?.trim();
  if (policy === undefined || policy === 'noeviction') return warnings;
  return [
    ...warnings,
    `Redis may evict keys that are live (maxmemory-policy ${policy}); set it to noeviction.`,
  ];
}

/** What is wrong with the user by which Redis is used, as sentences; none where Redis does not tell which one it is. */
export async function userWarnings(redis: Redis): Promise<string[]> {
  const user = await redis.call('ACL', 'WHOAMI').catch((error: Error) => {
    if (error.name === 'ReplyError') return null;
    throw error;
  });
  return user === 'default'
    ? [
        'medref comes to Redis as the user "default", as everybody may. Give each process a user of its own: ' +
          'deploy/redis/users.acl has them.',
      ]
    : [];
}

/**
 * Turns `lazyfree-lazy-expire` on where the user may: a large content that expires would stop Redis for as long as it
 * takes to free it, some 0.3 s for a million records, and does so aside with this.
 * @returns what is wrong, as sentences, where it may not
 */
async function letExpiryRunAside(server: Server): Promise<string[]> {
  const name = 'lazyfree-lazy-expire';
  try {
    const [, value] = (await server.config('GET', name)) as string[];
    if (value === 'no') await server.config('SET', name, 'yes');
    return [];
  } catch (error) {
    if ((error as Error).name !== 'ReplyError') throw error;
    return [
      `The Redis user may not set ${name}; see that it is on, or large contents stop Redis as they expire.`,
    ];
  }
}
