// medref versions: the kept versions of a collection, latest first.

import { count } from '../../shared/format.ts';
import { servedKeys } from '../../shared/store/keys.ts';
import { contentOf, readKeptVersions, readLiveVersion, versionOf } from '../../shared/store/versions.ts';
import { collectionNamed } from '../arguments.ts';
import { type CommandContext, exitCodes, withRedis } from '../context.ts';
import { type OutputOptions, print, table } from '../output.ts';

/** Prints the kept versions of a collection. @returns the exit code */
export async function versionsCommand(
  context: CommandContext,
  name: string,
  options: OutputOptions,
): Promise<number> {
  const served = collectionNamed(name);
  const { keys } = servedKeys(context.settings.keyPrefix, served);
  const [kept, live] = await withRedis(context.settings, (redis) =>
    Promise.all([readKeptVersions(redis, keys), readLiveVersion(redis, keys)]),
  );
  const its = kept.map((version) => versionOf(served, version)).filter((version) => version !== null);
  const versions = its.reverse().map(({ version, content, publishedAt, totalCount, checksum }) => ({
    version,
    contentOf: contentOf({ content }),
    publishedAt,
    totalCount,
    checksum,
    live: version === live?.version,
  }));
  print(context, { versions }, options, () =>
    table(
      ['version', 'content of', 'published', 'records', 'checksum', ''],
      versions.map((it) => [
        String(it.version),
        String(it.contentOf),
        it.publishedAt,
        count(it.totalCount),
        it.checksum.slice(0, 12),
        it.live ? 'live' : '',
      ]),
    ),
  );
  return exitCodes.done;
}
