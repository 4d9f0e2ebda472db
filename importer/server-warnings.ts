// Warnings about how Redis servers are configured, as sentences.

import { mastersOf, type Redis } from '../shared/redis/connections.ts';
import { RedisUnavailableError } from '../shared/redis/failures.ts';
import { readInfo, warningsOf } from '../shared/redis/server-setup.ts';

type Server = ReturnType<typeof mastersOf>[number];

/** The oldest Redis that knows every command we send. */
const oldestVersion = [6, 2] as const;

/**
 * Returns what is wrong with how the servers are set up, as sentences; turns on `lazyfree-lazy-expire` if it may.
 * @throws RedisUnavailableError when one is older than Redis 6.2
 */
export async function serverWarnings(redis: Redis, keyPrefix: string): Promise<string[]> {
  const masters = mastersOf(redis);
  const warnings = await Promise.all(
    masters.map(async (server) => {
      const { host, port } = server.options;
      const where = masters.length === 1 ? '' : ` This is of ${host}:${port}.`;
      return (await warningsOfMaster(server, keyPrefix)).map((warning) => warning + where);
    }),
  );
  return warnings.flat();
}

async function warningsOfMaster(server: Server, keyPrefix: string): Promise<string[]> {
  const info = await readInfo(server);
  if (info === null) return ['The Redis user may not run INFO, so version and eviction were not checked.'];
  const { version } = info;
  const [major = 0, minor = 0] = version.split('.').map(Number);
  if (major < oldestVersion[0] || (major === oldestVersion[0] && minor < oldestVersion[1])) {
    throw new RedisUnavailableError(
      `This Redis is version ${version}; medref needs 6.2 or newer, or Valkey.`,
    );
  }
  return [...(await letExpiryRunAside(server)), ...(await warningsOf(server, info, keyPrefix))];
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
