// Warnings about how Redis servers are configured, as sentences.

import { mastersOf, type Redis } from '../shared/redis/connections.ts';
import { RedisUnavailableError } from '../shared/redis/failures.ts';
import { readInfo, warningsOf } from '../shared/redis/server-setup.ts';

type Server = ReturnType<typeof mastersOf>[number];

/** The oldest supported version of Redis. */
const oldestVersion = [6, 2] as const;

/**
 * Returns problems of the servers' settings, as sentences; turns on `lazyfree-lazy-expire` if permitted.
 * @throws RedisUnavailableError if a server is older than Redis 6.2
 */
export async function serverWarnings(redis: Redis, keyPrefix: string): Promise<string[]> {
  const masters = mastersOf(redis);
  const warnings = await Promise.all(
    masters.map(async (server) => {
      const { host, port } = server.options;
      const where = masters.length === 1 ? '' : ` Server: ${host}:${port}.`;
      return (await warningsOfMaster(server, keyPrefix)).map((warning) => warning + where);
    }),
  );
  return warnings.flat();
}

async function warningsOfMaster(server: Server, keyPrefix: string): Promise<string[]> {
  const info = await readInfo(server);
  if (info === null)
    return ['The Redis user may not run INFO; version and eviction policy were not checked.'];
  const { version } = info;
  const [major = 0, minor = 0] = version.split('.').map(Number);
  if (major < oldestVersion[0] || (major === oldestVersion[0] && minor < oldestVersion[1])) {
    throw new RedisUnavailableError(
      `This Redis is version ${version}; medref needs 6.2 or newer, or Valkey.`,
    );
  }
  return [...(await letExpiryRunAside(server)), ...(await warningsOf(server, info, keyPrefix))];
}

/** Returns problems of the Redis user, as sentences; none if Redis does not report the user. */
export async function userWarnings(redis: Redis): Promise<string[]> {
  const user = await redis.call('ACL', 'WHOAMI').catch((error: Error) => {
    if (error.name === 'ReplyError') return null;
    throw error;
  });
  return user === 'default'
    ? [
        'medref connects to Redis as user "default". Give each process its own user: ' +
          'deploy/redis/users.acl has them.',
      ]
    : [];
}

/**
 * Turns on `lazyfree-lazy-expire` if the user may. Without it, an expiring content of a million records blocks Redis for about
 * 0.3 s; with it, Redis frees memory in the background.
 * @returns warnings, as sentences, if the user may not
 */
async function letExpiryRunAside(server: Server): Promise<string[]> {
  const name = 'lazyfree-lazy-expire';
  try {
    const [, value] = (await server.config('GET', name)) as string[];
    if (value === 'no') await server.config('SET', name, 'yes');
    return [];
  } catch (error) {
    if ((error as Error).name !== 'ReplyError') throw error;
    return [`The Redis user may not set ${name}. Turn it on, or Redis blocks while large contents expire.`];
  }
}
