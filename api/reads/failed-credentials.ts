// Credentials that failed, by the network they came from: so many at once, and so many a second after that.

import { LRUCache } from 'lru-cache';

/** How many a network may send at once, and after how long each of them is forgiven, in ms. */
export interface FailureBounds {
  readonly atOnce: number;
  readonly forgivenMs: number;
}

/** Networks that are remembered; those that were longest silent are forgotten first. */
const maxNetworks = 10_000;

/** Counts them, for one process. */
export class FailedCredentials {
  readonly #bounds: FailureBounds;
  /** When each network would have sent none, by its name. */
  readonly #forgivenAt = new LRUCache<string, number>({ max: maxNetworks });

  constructor(bounds: FailureBounds) {
    this.#bounds = bounds;
  }

  /** Whether a network may fail no more for now. */
  isOver(network: string): boolean {
    const { atOnce, forgivenMs } = this.#bounds;
    return (this.#forgivenAt.get(network) ?? 0) - Date.now() > (atOnce - 1) * forgivenMs;
  }

  /** Counts one. @returns whether it was counted: past the bound, none is */
  count(network: string): boolean {
    if (this.isOver(network)) return false;
    const { forgivenMs } = this.#bounds;
    this.#forgivenAt.set(network, Math.max(Date.now(), this.#forgivenAt.get(network) ?? 0) + forgivenMs);
    return true;
  }

  /** Takes back what was counted. */
  forgive(network: string): void {
    const forgivenAt = this.#forgivenAt.get(network);
    if (forgivenAt !== undefined) this.#forgivenAt.set(network, forgivenAt - this.#bounds.forgivenMs);
  }
}
