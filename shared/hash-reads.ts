// Reads of fields of hashes. What is asked in one turn of the event loop goes to Redis as one command for each hash:
// a command costs the client several µs, whether it asks for one field or for many.

import type { Redis } from './redis.ts';

/** A command is sent once it has this many fields: a longer one would hold up others in Redis. */
const maxFields = 500;

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
    if (until >= maxFields) gathered.send();
    const values = await gathered.reply;
    return values.length === fields.length ? values : values.slice(from, until);
  }

  #gather(key: string): Gathered {
    const fields: string[] = [];
    let send = () => {};
    const reply = new Promise<(Buffer | null)[]>((resolve, reject) => {
      send = () => {
        if (this.#gathered.get(key) !== gathered) return;
        this.#gathered.delete(key);
        this.#redis.hmgetBuffer(key, ...fields).then(resolve, reject);
      };
    });
    const gathered: Gathered = { fields, reply, send };
    this.#gathered.set(key, gathered);
    setImmediate(send);
    return gathered;
  }
}
