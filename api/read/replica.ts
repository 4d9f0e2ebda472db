// Reads from one replica while it has the data that the primary has, and never older data than this process has served.

import { setTimeout as sleep } from 'node:timers/promises';
import { type Redis, routed } from '../../shared/redis/connections.ts';
import { isRedisUnavailable } from '../../shared/redis/failures.ts';
import type { CollectionKeys } from '../../shared/store/keys.ts';
import { type LiveVersion, readLiveVersion } from '../../shared/store/versions.ts';

/** How long a replica may lag behind a publication before it is skipped, and how often it is checked, in ms. */
const patienceMs = 300;
const askEveryMs = 50;

/** The connections to read by; both are borrowed. */
export interface ReplicaOptions {
  readonly master: Redis;
  /** A connection to one replica. */
  readonly replica: Redis;
  /** Called each time contents are read from another server than before. */
  readonly onTurn?: (from: 'master' | 'replica') => void;
}

/** A replica, with the primary as its fallback. */
export class Replica {
  /** Reads from the replica, or from the primary while the replica is skipped. */
  readonly redis: Redis;
  readonly #master: Redis;
  readonly #replica: Redis;
  readonly #onTurn: (from: 'master' | 'replica') => void;
  /** Whether the replica last had the same live version as the primary, by key. */
  readonly #inStep = new Map<string, boolean>();
  #isUsed = false;
  /** How often the connection was lost or led to another server. */
  #losses = 0;

  constructor({ master, replica, onTurn = () => undefined }: ReplicaOptions) {
    this.#master = master;
    this.#replica = replica;
    this.#onTurn = onTurn;
    this.redis = routed(replica, () => (this.#isUsed && replica.status === 'ready' ? null : master));
  }

  /** Skips the replica until it is seen to have the live versions: it was disconnected, or is another server. */
  forget(): void {
    this.#losses += 1;
    for (const key of this.#inStep.keys()) this.#inStep.set(key, false);
    this.#turn();
  }

  /**
   * Returns the live version of a collection: the primary's, or briefly the previous one, which the replica still has.
   * @param known the version that this process serves
   * @param isPatient whether to wait for a replica that lags behind
   * @throws the error of the primary's connection, unless the replica is known to have the live version
   */
  async readLive(
    keys: CollectionKeys,
    known: LiveVersion | undefined,
    isPatient: boolean,
  ): Promise<LiveVersion | null> {
    const deadline = Date.now() + (isPatient && this.#inStep.get(keys.live) ? patienceMs : 0);
    for (;;) {
      const losses = this.#losses;
      const [master, replica] = await Promise.allSettled([
        readLiveVersion(this.#master, keys),
        readLiveVersion(this.#replica, keys),
      ]);
      const held = replica.status === 'fulfilled' ? replica.value : undefined;
      if (master.status === 'rejected') {
        // Without a primary nothing is published, so the replica stays up to date.
        const isEnough = this.#isUsed && held && held.version >= (known?.version ?? 0);
        if (isEnough && isRedisUnavailable(master.reason)) return held;
        throw master.reason;
      }
      const isSame = held !== undefined && held?.document === master.value?.document;
      const isInStep = isSame && losses === this.#losses;
      if (isInStep || Date.now() >= deadline) {
        this.#note(keys.live, isInStep);
        return master.value;
      }
      await sleep(askEveryMs);
    }
  }

  #note(key: string, isInStep: boolean): void {
    this.#inStep.set(key, isInStep);
    this.#turn();
  }

  #turn(): void {
    const all = [...this.#inStep.values()];
    const isUsed = all.length > 0 && all.every(Boolean);
    if (isUsed === this.#isUsed) return;
    this.#isUsed = isUsed;
    this.#onTurn(isUsed ? 'replica' : 'master');
  }
}
