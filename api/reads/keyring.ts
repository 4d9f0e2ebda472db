// In: a key as a client sent it. Out: what is known of it, for a process that serves; and when it was last used, noted.

import { type ApiKey, digestOf } from '../../shared/api-keys.ts';
import { apiKeyKeys } from '../../shared/keys.ts';
import type { Redis } from '../../shared/redis/connections.ts';

/** Last use is written at most this often for each key and process. */
const lastUseEveryMs = 60_000;

/** How long a key that was found is known without asking, in ms: it stops working within a second of its revocation. */
const knownForMs = 500;

/** Looks keys up for the API, and notes when each was last used. */
export class ApiKeyring {
  readonly #redis: Redis;
  readonly #stored: ReturnType<typeof apiKeyKeys>;
  readonly #noted = new Map<string, number>();
  /** Keys that were found, by their digests; one that is asked for at the moment is a promise for all who ask. */
  readonly #found = new Map<string, { readonly key: Promise<ApiKey | null>; readonly until: number }>();

  constructor({ redis, keyPrefix }: { redis: Redis; keyPrefix: string }) {
    this.#redis = redis;
    this.#stored = apiKeyKeys(keyPrefix);
  }

  /** The key that a client sent, if it is known, not revoked and not expired; throws while Redis is away. */
  async find(sent: string): Promise<ApiKey | null> {
    const now = Date.now();
    const key = await this.#lookUp(digestOf(sent), now);
    if (key === null || (key.expiresAt !== null && Date.parse(key.expiresAt) <= now)) return null;
    this.#noteUse(key.id, now);
    return key;
  }

  /** What is stored under a digest; asked for anew when it was asked for half a second ago. */
  #lookUp(digested: string, now: number): Promise<ApiKey | null> {
    const found = this.#found.get(digested);
    if (found && found.until > now) return found.key;
    const key = this.#redis
      .hget(this.#stored.keys, digested)
      .then((text) => (text === null ? null : (JSON.parse(text) as ApiKey)));
    this.#found.set(digested, { key, until: now + knownForMs });
    // Only keys that there are stay known, so that what is sent at random is not kept.
    const forget = () => this.#found.get(digested)?.key === key && this.#found.delete(digested);
    key.then((it) => it ?? forget(), forget);
    return key;
  }

  #noteUse(id: string, now: number): void {
    if (now - (this.#noted.get(id) ?? 0) < lastUseEveryMs) return;
    this.#noted.set(id, now);
    this.#redis
      .hset(this.#stored.lastUse, id, new Date(now).toISOString())
      .catch(() => this.#noted.delete(id));
  }
}
