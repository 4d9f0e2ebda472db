// Reads of fields of hashes. What is asked in one turn of the event loop goes to Redis as one command for each hash:
// a command costs the client several µs, whether it asks for one field or for many.

import type { Redis } from '../../shared/redis/connections.ts';
import { atEndOfTurn } from './end-of-turn.ts';

/** A command is sent once it has this many fields: a longer one would hold up others in Redis. */
const maxFields = 500;

/** For how long a hash that was there counts as there, in ms: no client can tell that from a request that came so much sooner. */
const stillThereMs = 0.5;

/** Whether a hash was there. */
interface Sought {
  /** When Redis was asked, in ms; `Infinity` until it is. */
  askedAt: number;
  readonly reply: Promise<boolean>;
}

/** What was asked of one hash in this turn. */
interface Gathered {
  readonly fields: string[];
  readonly reply: Promise<(Buffer | null)[]>;
  send(): void;
}

/** Reads fields of hashes by one connection, which is borrowed. */
export class HashReads {
  readonly #redis: Redis;
  readonly #gathered = new Map<string, Gathered>();
  readonly #sought = new Map<string, Sought>();

  constructor(redis: Redis) {
    this.#redis = redis;
  }

  /** The values of fields, in their order; `null` for one that is not there. Throws whatever the connection throws. */
  async get(key: string, fields: readonly string[]): Promise<(Buffer | null)[]> {
    if (fields.length === 0) return [];
    const gathered = this.#gathered.get(key) ?? this.#gather(key);
    const from = gathered.fields.length;
    for (const field of fields) gathered.fields.push(field);
    const until = gathered.fields.length;
    if (until >= maxFields) this.#send(key, gathered);
    const values = await gathered.reply;
    return values.length === fields.length ? values : values.slice(from, until);
  }

  /**
   * Whether a hash is there; all who ask in one turn, and in the half millisecond after Redis was asked, ask once. Throws
   * whatever the connection throws.
   */
  has(key: string): Promise<boolean> {
    const now = performance.now();
    for (const [name, { askedAt }] of this.#sought)
      if (now - askedAt >= stillThereMs) this.#sought.delete(name);
    const known = this.#sought.get(key);
    if (known) return known.reply;
    const sought: Sought = {
      askedAt: Number.POSITIVE_INFINITY,
      reply: new Promise<boolean>((resolve, reject) => {
        atEndOfTurn(() => {
          sought.askedAt = performance.now();
          this.#redis.exists(key).then((count) => resolve(count === 1), reject);
        });
      }),
    };
    this.#sought.set(key, sought);
    return sought.reply;
  }

  #gather(key: string): Gathered {
    // What comes first sends all that comes in this turn, so that it goes out in one write.
    if (this.#gathered.size === 0) atEndOfTurn(() => this.#sendAll());
    const fields: string[] = [];
    let send = () => {};
    const reply = new Promise<(Buffer | null)[]>((resolve, reject) => {
      send = () => void this.#redis.hmgetBuffer(key, ...fields).then(resolve, reject);
    });
    const gathered: Gathered = { fields, reply, send };
    this.#gathered.set(key, gathered);
    return gathered;
  }

  #send(key: string, gathered: Gathered): void {
    this.#gathered.delete(key);
    gathered.send();
  }

  #sendAll(): void {
    for (const [key, gathered] of this.#gathered) this.#send(key, gathered);
  }
}
