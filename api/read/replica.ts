// Reads from one replica, for one process that serves: as long as it has what the master has, and never from one that
// lags behind what this process has answered from.

import { setTimeout as sleep } from 'node:timers/promises';
import { type Redis, routed } from '../../shared/redis/connections.ts';
import { isRedisUnavailable } from '../../shared/redis/failures.ts';
import type { CollectionKeys } from '../../shared/store/keys.ts';
import { type LiveVersion, readLiveVersion } from '../../shared/store/versions.ts';

/** How long a replica may be behind a publication before it is passed over, and how often it is asked meanwhile, in ms. */
const patienceMs = 300;
const askEveryMs = 50;

/** What a replica is read by; both connections are borrowed. */
export interface ReplicaOptions {
  readonly master: Redis;
  /** To one replica. */
  readonly replica: Redis;
  /** Told where contents are read from, each time that this is another server than before. */
  readonly onTurn?: (from: 'master' | 'replica') => void;
}

/** One replica, with the master beside it. */
export class Replica {
  /** Asks the replica, or the master while the replica is passed over. */
  readonly redis: Redis;
  readonly #master: Redis;
  readonly #replica: Redis;
  readonly #onTurn: (from: 'master' | 'replica') => void;
  /** By the key of a live version: whether the replica was last seen to have the master's. */
  readonly #inStep = new Map<string, boolean>();
  #isUsed = false;
  /** How often it was another one, or away. */
  #losses = 0;

  constructor({ master, replica, onTurn = () => undefined }: ReplicaOptions) {
    this.#master = master;
    this.#replica = replica;
    this.#onTurn = onTurn;
    this.redis = routed(replica, () => (this.#isUsed && replica.status === 'ready' ? null : master));
  }

  /** The replica is another one, or has been away: nothing is read from it until it is seen to have what is live. */
  forget(): void {
    this.#losses += 1;
    for (const key of this.#inStep.keys()) this.#inStep.set(key, false);
    this.#turn();
  }

  /**
   * The live version of a collection: the master's, or for a moment the one before, which the replica still has.
   * @param known what this process answers from. @param isPatient whether a replica that is behind may catch up first
   * @throws what the master's connection throws, unless the replica is known to have what is live
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
        // While there is no master, nothing is published: what the replica had, it has.
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
