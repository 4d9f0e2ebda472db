// Watches Redis during serving: logs when it becomes available or unavailable, and problems of its settings.

import { setTimeout as sleep } from 'node:timers/promises';
import type { Logger } from 'pino';
import type { Redis } from '../shared/redis/connections.ts';
import { plainReason } from '../shared/redis/failures.ts';
import { setupWarnings } from '../shared/redis/server-setup.ts';
import { describeServer } from '../shared/redis/server-url.ts';

/** How often the set-up of Redis is checked, in ms. */
const checkSetupEveryMs = 30_000;

/** How long the first connection may take before the process serves without it, in ms. */
const firstConnectionMs = 2_000;

/** Redis as a process that serves knows it. */
export interface RedisWatch {
  /** Returns why Redis is unavailable, as a sentence without addresses, since any client may ask; `null` if it is available. */
  readonly whyUnavailable: () => string | null;
  /** Returns problems of the settings of Redis, as sentences. */
  readonly setupWarnings: () => readonly string[];
  /** Waits until Redis is available or known to be unavailable, so that the first request does not fail for no reason. */
  firstConnection(): Promise<void>;
  stop(): void;
}

/** Starts to watch a connection. */
export function watchRedis(
  redis: Redis,
  { redisUrl, keyPrefix, logger }: { redisUrl: string; keyPrefix: string; logger: Logger },
): RedisWatch {
  const server = describeServer(redisUrl);
  let isAvailable: boolean | undefined;
  let isStopped = false;
  let reason: string | undefined;
  let publicReason = 'Redis has not replied yet.';
  let warnings: readonly string[] = [];
  redis.on('error', (error) => {
    const isRefusal = error.name === 'ReplyError';
    // A refusal says more than the end of the connection that follows it.
    if (!isRefusal && !('syscall' in error) && reason !== undefined) return;
    reason = plainReason(error);
    publicReason = isRefusal ? reason : 'Redis cannot be reached.';
  });
  redis.on('ready', () => {
    isAvailable = true;
    logger.info({ redis: server }, 'Redis is available.');
    void checkSetup();
  });
  // Not each attempt to connect again.
  redis.on('close', () => {
    if (isStopped) return;
    if (isAvailable !== false) logger.warn({ redis: server, reason }, 'Redis is unavailable.');
    isAvailable = false;
  });
  const checkSetup = async () => {
    const before = warnings;
    warnings = await setupWarnings(redis, keyPrefix).catch(() => before); // Unavailable: that is logged above.
    for (const warning of warnings) if (!before.includes(warning)) logger.warn(warning);
  };
  const timer = setInterval(checkSetup, checkSetupEveryMs).unref();
  return {
    whyUnavailable: () => (isAvailable ? null : publicReason),
    setupWarnings: () => warnings,
    async firstConnection() {
      const attempt = new Promise((resolve) => redis.once('ready', resolve).once('close', resolve));
      await Promise.race([attempt, sleep(firstConnectionMs, null, { ref: false })]);
    },
    stop() {
      isStopped = true;
      clearInterval(timer);
    },
  };
}
