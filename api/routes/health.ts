// GET /health/live and /health/ready: whether the process runs, and whether it can serve data; without a key.

import type { ResponseToolkit, ServerRoute } from '@hapi/hapi';
import type { ServedCollection } from '../../shared/collections/define.ts';
import { plainReason, refusalKind } from '../../shared/redis/failures.ts';
import { NotReadyError } from '../errors.ts';
import type { ReadModel } from '../read/read-model.ts';
import { NoVersionError } from '../read/versions.ts';
import { jsonResponse, singleEnvelope } from '../reply/envelope.ts';

/** The state of Redis. */
interface RedisHealth {
  /** Why Redis is unavailable, as a sentence; `null` while it is up. */
  readonly whyUnavailable: () => string | null;
  /** Problems of its settings, as sentences. */
  readonly setupWarnings: () => readonly string[];
}

export function healthRoutes(
  collections: readonly ServedCollection[],
  readModel: ReadModel,
  { whyUnavailable, setupWarnings }: RedisHealth,
): ServerRoute[] {
  return [
    {
      method: 'GET',
      path: '/health/live',
      options: { auth: false },
      handler: (_request, h) => healthy(h, { status: 'live' }),
    },
    {
      method: 'GET',
      path: '/health/ready',
      options: { auth: false },
      handler: async (_request, h) => {
        const live = await readModel.liveVersions(collections).catch((error: unknown) => {
          const reason = whyUnavailable() ?? (refusalKind(error) && plainReason(error as Error));
          throw reason === null ? error : new NotReadyError(`Not ready: ${reason}`, error);
        });
        if ([...live.values()].every((version) => version === null)) {
          const names = [...live.keys()].join(', ');
          throw new NoVersionError(`Not ready: no version has been published yet of ${names}.`);
        }
        const versions = Object.fromEntries([...live].map(([name, it]) => [name, it?.version ?? null]));
        return healthy(h, { status: 'ready', versions, warnings: setupWarnings() });
      },
    },
  ];
}

function healthy(h: ResponseToolkit, data: object) {
  return jsonResponse(h, singleEnvelope(Buffer.from(JSON.stringify(data)))).header(
    'cache-control',
    'no-store',
  );
}
