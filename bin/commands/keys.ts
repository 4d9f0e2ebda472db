// medref keys: API keys, from their making to their end.

import { createApiKey, listApiKeys, revokeApiKey } from '../../shared/api-keys.ts';
import { exitCodes } from '../exit-codes.ts';
import { createLogger } from '../logger.ts';
import { operator } from '../operator.ts';
import type { CommandContext } from '../surroundings.ts';
import { type OutputOptions, print, printSafely, table } from './output.ts';
import { withRedis } from './with-redis.ts';

/** Makes a key and prints it, this once; one that could not be printed is revoked again. @returns the exit code */
export async function createKey(
  context: CommandContext,
  options: OutputOptions & { client: string; expires?: Date; rate?: string },
): Promise<number> {
  context.mindResults();
  return withRedis(context.settings, async (redis) => {
    const { client, expires, rate } = options;
    const made = await createApiKey(redis, context.settings.keyPrefix, {
      client,
      expiresAt: expires ?? null,
      rate: rate ?? null,
    });
    const { id, key, expiresAt } = made;
    const text = () =>
      [
        `Key ${id} for ${client}${expiresAt ? `, expires ${expiresAt}` : ''}. It is shown this once:`,
        key,
      ].join('\n');
    const logger = createLogger(context).child({ by: operator(), id, client });
    logger.info({ expiresAt, rate: made.rate }, 'A key was made.');
    try {
      await printSafely(context, { id, client, key, expiresAt, rate: made.rate }, options, text);
    } catch (error) {
      await revokeApiKey(redis, context.settings.keyPrefix, id);
      logger.info('A key was revoked, since it could not be written.');
      throw new Error(`The key could not be written, so it was revoked: ${(error as Error).message}.`);
    }
    return exitCodes.done;
  });
}

/** Prints what is known of all keys. @returns the exit code */
export async function listKeys(context: CommandContext, options: OutputOptions): Promise<number> {
  return withRedis(context.settings, async (redis) => {
    const keys = await listApiKeys(redis, context.settings.keyPrefix);
    print(context, { keys }, options, () =>
      table(
        ['id', 'client', 'created', 'expires', 'rate', 'last used'],
        keys.map((key) => [
          ...[key.id, key.client, key.createdAt],
          ...[key.expiresAt ?? 'never', key.rate ?? 'no limit', key.lastUsedAt ?? 'never'],
        ]),
      ),
    );
    return exitCodes.done;
  });
}

/** Revokes a key. @returns the exit code */
export async function revokeKey(
  context: CommandContext,
  id: string,
  options: OutputOptions,
): Promise<number> {
  return withRedis(context.settings, async (redis) => {
    const revoked = await revokeApiKey(redis, context.settings.keyPrefix, id);
    if (!revoked)
      throw new Error(`There is no key with the id ${JSON.stringify(id)}; "medref keys list" shows all.`);
    createLogger(context).info({ by: operator(), id, client: revoked.client }, 'A key was revoked.');
    print(
      context,
      { id, client: revoked.client },
      options,
      () => `Key ${id} of ${revoked.client} is revoked.`,
    );
    return exitCodes.done;
  });
}
