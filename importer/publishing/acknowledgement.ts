// In: a version that was published. Out: how many replicas have it, and whether it is on the disk; a warning where it is not:
// Redis does both after it has replied, so a failover or a crash can lose what was reported.

import type { Logger } from 'pino';
import type { CollectionKeys } from '../../shared/keys.ts';
import { beside, type Redis, replicasOf } from '../../shared/redis/connections.ts';
import { plainReason } from '../../shared/redis/failures.ts';
import { NotPublishedError } from '../scripts/publish.ts';
import { awaitDisk } from './disk.ts';

/** How long replicas are waited for, in ms. */
const waitMs = 1_000;

/** What is waited for. */
export interface Awaited {
  readonly keys: CollectionKeys;
  readonly version: number;
  /** How many replicas; `undefined`: all that there are. */
  readonly replicas: number | undefined;
  readonly logger?: Logger | undefined;
}

/**
 * Waits until replicas have a publication, for a second at most, and until it is on the disk, for two.
 * @returns what an operator is to be warned of, as sentences. @throws NotPublishedError where it is lost already
 */
export async function awaitAcknowledgement(redis: Redis, awaited: Awaited): Promise<string[]> {
  const { keys, version, logger } = awaited;
  const warnings = await Promise.all([
    awaitReplicas(redis, awaited).catch((error: Error) => [
      `Whether replicas have version ${version} is not known: ${plainReason(error)}`,
    ]),
    awaitDisk(redis, { key: keys.live, what: `version ${version}`, logger }),
  ]);
  if ((await redis.zscore(keys.versions, version)) !== null) return warnings.flat();
  throw new NotPublishedError(
    `Version ${version} was published, and a failover or a crash has lost it. Run it again.`,
  );
}

async function awaitReplicas(redis: Redis, { keys, version, replicas, logger }: Awaited): Promise<string[]> {
  const wanted = replicas ?? (await replicasOf(redis, keys.live));
  if (wanted === 0) return [];
  const acknowledged = Number(await beside(redis, keys.live, ['WAIT', wanted, waitMs]));
  logger?.info({ version, replicas: wanted, acknowledged }, 'Replicas have acknowledged the publication.');
  if (acknowledged >= wanted) return [];
  return [
    `${acknowledged} of ${wanted} replicas had version ${version} within ${waitMs / 1_000} s. A failover to one that does not ` +
      'have it loses this version: see INFO replication, and where medref status shows an older one, import again.',
  ];
}
