// Reads fields of hashes. Reads of one turn of the event loop go to Redis as one HMGET for each hash: a command costs the
// client several µs, whether it names one field or many.

import type { Redis } from '../../shared/redis/connections.ts';

/** A command is sent once it has this many fields: a longer one would hold up others in Redis. */
const maxFields = 500;

/** The fields of one hash that were asked for in this turn. */
interface Batch {
  readonly fields: string[];
  readonly reply: Promise<(Buffer | null)[]>;
  send(): void;
}

/** Reads fields of hashes by one connection, which is borrowed. */
export class HmgetBatcher {
  readonly #redis: Redis;
  readonly #batches = new Map<string, Batch>();

  constructor(redis: Redis) {
    this.#redis = redis;
  }

  /** Returns the values of fields in their order; `null` for a field that is missing. Throws what the connection throws. */
  async get(key: string, fields: readonly string[]): Promise<(Buffer | null)[]> {
    if (fields.length === 0) return [];
    const batch = this.#batches.get(key) ?? this.#begin(key);
    const from = batch.fields.length;
    for (const field of fields) batch.fields.push(field);
    const until = batch.fields.length;
    if (until >= maxFields) this.#send(key, batch);
    const values = await batch.reply;
    return values.length === fields.length ? values : values.slice(from, until);
  }

  #begin(key: string): Batch {
    // The first batch of a turn sends all batches of that turn, so that they leave in one write.
    if (this.#batches.size === 0) atEndOfTurn(() => this.#sendAll());
    const fields: string[] = [];
    let send = () => {};
    const reply = new Promise<(Buffer | null)[]>((resolve, reject) => {
      send = () => void this.#redis.hmgetBuffer(key, ...fields).then(resolve, reject);
    });
    const batch: Batch = { fields, reply, send };
    this.#batches.set(key, batch);
    return batch;
  }

  #send(key: string, batch: Batch): void {
    this.#batches.delete(key);
    batch.send();
  }

  #sendAll(): void {
    for (const [key, batch] of this.#batches) this.#send(key, batch);
  }
}

let waiting: (() => void)[] = [];

/** Acts at the end of this turn of the event loop, after all requests of the turn, in the order of the calls. */
export function atEndOfTurn(act: () => void): void {
  if (waiting.length === 0) setImmediate(endTurn);
  waiting.push(act);
}

function endTurn(): void {
  const acts = waiting;
  waiting = [];
  for (const act of acts) act();
}
