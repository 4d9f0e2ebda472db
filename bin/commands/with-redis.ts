// A connection for the length of one command.

import type { Settings } from '../../config/settings.ts';
import { connectForWriting, type Redis } from '../../shared/redis/connections.ts';

/** Runs a command with a connection, which is closed whatever happens. */
export async function withRedis<Result>(
  { redisUrl }: Settings,
  run: (redis: Redis) => Promise<Result>,
): Promise<Result> {
  const redis = await connectForWriting(redisUrl);
  try {
    return await run(redis);
  } finally {
    redis.disconnect();
  }
}
