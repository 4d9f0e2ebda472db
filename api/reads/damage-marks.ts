// What readers find damaged: told to operators, and marked in Redis, so that the next import knows without looking.

import { LRUCache } from 'lru-cache';
import type { Redis } from '../../shared/redis/connections.ts';
import type { CollectionKeys } from '../../shared/store/keys.ts';
import type { Version } from '../../shared/store/versions.ts';

/** Contents whose marks a process remembers. */
const maxRemembered = 100;

/** For how long it does, in ms: a mark that Redis has lost is set again by who meets the damage after that. */
const rememberedMs = 60_000;

/** Tells and marks, for one process that serves. */
export class DamageMarks {
  readonly #redis: Redis;
  readonly #onDamage: (message: string) => void;
  readonly #marked: LRUCache<string, true>;

  /** @param onDamage told of each, as a sentence */
  constructor(redis: Redis, onDamage: (message: string) => void, ttl = rememberedMs) {
    this.#redis = redis;
    this.#onDamage = onDamage;
    this.#marked = new LRUCache({ max: maxRemembered, ttl });
  }

  /** Tells of damage that no content is to be marked for. */
  tell(message: string): void {
    this.#onDamage(message);
  }

  /** Tells that a part of a version's content is not as it was content, and marks it. */
  found(
    { damaged }: Pick<CollectionKeys, 'damaged'>,
    { content }: Pick<Version, 'content'>,
    message: string,
  ): void {
    this.#onDamage(message);
    const name = `${damaged} ${content}`;
    if (this.#marked.has(name)) return;
    this.#marked.set(name, true);
    this.#redis.hset(damaged, String(content), message).catch(() => this.#marked.delete(name));
  }
}
