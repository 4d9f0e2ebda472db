// medref status: what is live, how old it is, how the last imports ended, who imports now, and what to do next.

import { settingWarnings } from '../../config/setting-warnings.ts';
import { diskWarnings } from '../../importer/durability.ts';
import { userWarnings } from '../../importer/server-warnings.ts';
import { judged } from '../../shared/advice.ts';
import { readState } from '../../shared/collection-state.ts';
import { servedCollections } from '../../shared/collections/collections.ts';
import { setupWarnings } from '../../shared/redis/server-setup.ts';
import { exitCodes } from '../exit-codes.ts';
import type { CommandContext } from '../surroundings.ts';
import { type OutputOptions, print } from './output.ts';
import { statusText } from './status-text.ts';
import { withRedis } from './with-redis.ts';

/**
 * Prints the state of every collection, and what is odd about the settings.
 * @returns the exit code: 1 where something is older than `maxAge`, in seconds
 */
export async function statusCommand(
  context: CommandContext,
  { maxAge = null, ...options }: OutputOptions & { readonly maxAge?: number | null },
): Promise<number> {
  const { keyPrefix, upstreams } = context.settings;
  const { states, ofRedis } = await withRedis(context.settings, async (redis) => ({
    states: await Promise.all(servedCollections.map((served) => readState(redis, keyPrefix, served))),
    ofRedis: [
      ...(await setupWarnings(redis, keyPrefix)),
      ...(await userWarnings(redis)),
      ...(await diskWarnings(redis)),
    ],
  }));
  const warnings = [...settingWarnings(context.settings), ...ofRedis];
  const collections = states.map((state) => {
    const isImported = upstreams.has(state.derivedFrom ?? state.collection);
    return judged(state, { maxAgeSeconds: maxAge, isImported });
  });
  print(context, { warnings, collections }, options, () => statusText(warnings, collections, context.stdout));
  return collections.some(({ stale }) => stale) ? exitCodes.failed : exitCodes.done;
}
