// In: a key as a client sent it. Out: what is known of it, for a process that serves; and when it was last used, noted.

import { type ApiKey, digestOf } from '../../shared/api-keys.ts';
import { apiKeyKeys } from '../../shared/keys.ts';
import type { Redis } from '../../shared/redis/connections.ts';
import { damageIn, parseStored } from '../../shared/redis/damage.ts';
import { DamagedError } from './version-reads.ts';

/** Last use is written at most this often for each key and process. */
const lastUseEveryMs = 60_000;

/** How long a key that was found is known without asking, in ms: it stops working within a second of its revocation. */
const knownForMs = 500;

/** What a keyring looks keys up by. */
export interface KeyringOptions {
  readonly redis: Redis;
  readonly keyPrefix: string;
  readonly onDamage: (message: string) => void;
}

/** Looks keys up for the API, and notes when each was last used. */
export class ApiKeyring {
  readonly #redis: Redis;
  readonly #onDamage: (message: string) => void;
  readonly #stored: ReturnType<typeof apiKeyKeys>;
  readonly #noted = new Map<string, number>();
  /** Keys that were found, as they were sent; one that is asked for at the moment is a promise for all who ask. */
  readonly #found = new Map<string, { readonly key: Promise<ApiKey | null>; readonly until: number }>();

  /** @param onDamage told of keys that are not as they were stored, as a sentence */
  constructor({ redis, keyPrefix, onDamage }: KeyringOptions) {
    this.#redis = redis;
    this.#onDamage = onDamage;
    this.#stored = apiKeyKeys(keyPrefix);
  }

  /** The key that a client sent, if it is known, not revoked and not expired; throws while Redis is away. */
  async find(sent: string): Promise<ApiKey | null> {
    const now = Date.now();
    const key = await this.#lookUp(sent, now);
    if (key === null || (key.expiresAt !== null && Date.parse(key.expiresAt) <= now)) return null;
    this.#noteUse(key.id, now);
    return key;
  }

  /** What is stored of a key; asked for anew when it was asked for half a second ago. */
  #lookUp(sent: string, now: number): Promise<ApiKey | null> {
    const found = this.#found.get(sent);
    if (found && found.until > now) return found.key;
    const key = this.#redis
      .hget(this.#stored.keys, digestOf(sent))
      .then((text) => (text === null ? null : parseStored<ApiKey>(this.#stored.keys, text)))
      .catch((error) => this.#refuse(error));
    this.#found.set(sent, { key, until: now + knownForMs });
    // Only keys that there are stay known, so that what is sent at random is not kept.
    const forget = () => this.#found.get(sent)?.key === key && this.#found.delete(sent);
    key.then((it) => it ?? forget(), forget);
    return key;
  }

  /** Keys that Redis cannot tell are not keys that there are not. */
  async #refuse(error: unknown): Promise<never> {
    const damage = await damageIn(this.#redis, error);
    if (!damage) throw error;
    this.#onDamage(damage.message);
    throw new DamagedError('Keys cannot be looked up at the moment.');
  }

  #noteUse(id: string, now: number): void {
    if (now - (this.#noted.get(id) ?? 0) < lastUseEveryMs) return;
    this.#noted.set(id, now);
    this.#redis
      .hset(this.#stored.lastUse, id, new Date(now).toISOString())
      .catch(() => this.#noted.delete(id));
  }
}
