// In: a key as a client sent it. Out: what is known of it, for a process that serves; and when it was last used, noted.

import { LRUCache } from 'lru-cache';
import { beside, type Redis } from '../../shared/redis/connections.ts';
import { damageIn, parseStored } from '../../shared/redis/damage.ts';
import { parseInfo } from '../../shared/redis/server-setup.ts';
import { isKeyText } from '../../shared/store/api-key-text.ts';
import { type ApiKey, digestOf } from '../../shared/store/api-keys.ts';
import { type ApiKeyKeys, apiKeyKeys } from '../../shared/store/keys.ts';
import { DamagedError } from '../read/versions.ts';
import { UnknownKeys } from './unknown-keys.ts';

/** Last use is written at most this often for each key and process. */
const lastUseEveryMs = 60_000;

/** How long a key that was found is known without asking, in ms: it stops working within a second of its revocation. */
const knownForMs = 500;

/** How many keys that there are a process remembers. One that does not exist is not remembered at all. */
const maxKnown = 10_000;

/** What a keyring looks keys up by. */
export interface KeyringOptions {
  readonly redis: Redis;
  readonly keyPrefix: string;
  readonly onDamage: (message: string) => void;
}

/** A key as it was stored a moment ago. */
interface Known {
  readonly key: ApiKey;
  /** When Redis has to be asked again. */
  readonly until: number;
}

/** Looks keys up for the API, and notes when each was last used. */
export class ApiKeyring {
  readonly #redis: Redis;
  readonly #onDamage: (message: string) => void;
  readonly #stored: ApiKeyKeys;
  readonly #noted = new LRUCache<string, number>({ max: maxKnown });
  /** As they were sent: to make a digest for each request would cost 2 % of it. */
  readonly #known = new LRUCache<string, Known>({ max: maxKnown });
  /** Those that Redis is asked for at the moment, for all who ask. */
  readonly #asked = new Map<string, Promise<ApiKey | null>>();
  readonly #unknown: UnknownKeys;

  /** @param onDamage told of keys that are not as they were stored, as a sentence */
  constructor({ redis, keyPrefix, onDamage }: KeyringOptions) {
    this.#redis = redis;
    this.#onDamage = onDamage;
    this.#stored = apiKeyKeys(keyPrefix);
    this.#unknown = new UnknownKeys(redis, this.#stored.keys, () => this.#mindEviction());
  }

  /** Asks anew for a key as soon as it is announced that it was revoked or rotated. @param listener is borrowed */
  listenTo(listener: Redis): void {
    const { announcements } = this.#stored;
    listener.subscribe(announcements).catch(() => undefined);
    listener.on('message', (channel: string, id: string) => {
      if (channel === announcements) this.#doubt(id);
    });
  }

  /**
   * The key that a client sent, if it is known, not revoked and not expired; throws while Redis is away.
   * @param network where it came from
   * @throws TooManyUnknownKeysError where too many came from there
   */
  async find(sent: string, network: () => string): Promise<ApiKey | null> {
    const now = Date.now();
    const known = this.#known.get(sent);
    if (!known && !isKeyText(sent)) return null;
    const isFresh = known !== undefined && known.until > now;
    const key = isFresh ? known.key : await (known ? this.#ask(sent, now) : this.#meet(sent, network(), now));
    if (key === null || (key.expiresAt !== null && Date.parse(key.expiresAt) <= now)) return null;
    this.#noteUse(key.id, now);
    return key;
  }

  /** A key that this process has not seen yet, or not for long; most of those that do not exist are met here. */
  async #meet(sent: string, network: string, now: number): Promise<ApiKey | null> {
    const isCounted = await this.#unknown.mind(network, digestOf(sent));
    const key = await this.#ask(sent, now);
    if (isCounted && key) this.#unknown.forgive(network);
    return key;
  }

  /** What is stored of a key; kept for a while, unless a change is announced before Redis has answered. */
  #ask(sent: string, now: number): Promise<ApiKey | null> {
    const underWay = this.#asked.get(sent);
    if (underWay) return underWay;
    const isCurrent = () => this.#asked.get(sent) === asked;
    const asked: Promise<ApiKey | null> = this.#read(sent)
      .then((key) => {
        if (isCurrent()) this.#keep(sent, key, now);
        return key;
      })
      .finally(() => isCurrent() && this.#asked.delete(sent));
    this.#asked.set(sent, asked);
    return asked;
  }

  #keep(sent: string, key: ApiKey | null, askedAt: number): void {
    if (key) this.#known.set(sent, { key, until: askedAt + knownForMs });
    else this.#known.delete(sent);
  }

  async #read(sent: string): Promise<ApiKey | null> {
    const { keys } = this.#stored;
    try {
      const text = await this.#redis.hget(keys, digestOf(sent));
      if (text !== null) return parseStored<ApiKey>(keys, text);
      if ((await this.#redis.exists(keys)) === 0) await this.#mindEviction();
      return null;
    } catch (error) {
      return this.#refuse(error);
    }
  }

  /** Called if there are no keys at all. @throws DamagedError if Redis may have evicted them: nobody has a wrong key then */
  async #mindEviction(): Promise<void> {
    const { keys } = this.#stored;
    const reply = await beside(this.#redis, keys, ['INFO']).catch(() => ''); // Without the right, it cannot be known.
    const { evictionPolicy, evictedKeys } = parseInfo(String(reply));
    if (evictedKeys === 0 && ['noeviction', 'unknown'].includes(evictionPolicy)) return;
    this.#onDamage(
      `${keys} is missing, and Redis evicts keys (maxmemory-policy ${evictionPolicy}). Set maxmemory-policy to noeviction, and restore the API keys from a backup or create new ones.`,
    );
    throw new DamagedError('Keys cannot be looked up at the moment.');
  }

  /** That there was such a key stays known: it is asked for again before it is taken for one that does not exist. */
  #doubt(id: string): void {
    this.#asked.clear();
    for (const [sent, { key }] of this.#known.entries())
      if (key.id === id) this.#known.set(sent, { key, until: 0 });
  }

  /** Keys that Redis cannot tell are not keys that there are not. */
  async #refuse(error: unknown): Promise<never> {
    const damage = error instanceof DamagedError ? null : await damageIn(this.#redis, error);
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
