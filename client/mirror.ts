// A collection that is followed: a snapshot, then what changes, each step whole and proven before it is given.

import { type Connection, growing, type Patience } from './connection.ts';
import { type Digest, numberOf, SetDigest } from './digests.ts';
import type { Change, ReadVersion } from './lists.ts';
import { type AnyRecord, idOf, readLines, readPages, recordIn } from './lists.ts';
import { MedrefError, mismatch, notTheVersion, otherContent } from './medref-error.ts';

export interface MirrorOptions {
  /** The version that you have a copy of: the first step is then what changed since. */
  readonly since?: number | undefined;
  /** Seconds from one question to the next, where a service is so old that it cannot wait for a publication; 60 else. */
  readonly every?: number | undefined;
  /** Ends the mirror, which then throws nothing. */
  readonly signal?: AbortSignal | undefined;
  /** Told of each failure after which the mirror goes on: what passes by itself, and what has to be read anew. */
  readonly onServiceError?: ((error: MedrefError) => void) | undefined;
}

/** A step of a mirror. Keep `version` with your copy, both or neither: it is where the mirror goes on, as `since`. */
export type MirrorStep<Item> =
  | {
      /** All records, in the order of the list: they take the place of your copy. */
      readonly kind: 'snapshot';
      readonly version: number;
      readonly digest: Digest;
      readonly records: readonly Item[];
      readonly changes?: undefined;
    }
  | {
      /** What makes your copy the version; none where the version has another number alone. */
      readonly kind: 'changes';
      readonly version: number;
      readonly digest: Digest;
      readonly changes: readonly Change<Item>[];
      readonly records?: undefined;
    };

/** For how many seconds the service is asked to wait; proxies often cut what is silent for 60. */
const wait = 30;
/** Within how many seconds of a publication all processes of a service know of it, and some more. */
const settling = 2;
/** How often a whole list may be other than its digest before this is no accident. */
const snapshots = 3;

/** Follows a collection. @throws MedrefError where going on is no use */
export async function* mirror<Item extends AnyRecord>(
  connection: Connection,
  collection: string,
  options: MirrorOptions,
): AsyncGenerator<MirrorStep<Item>, void, undefined> {
  const follower = new Follower<Item>(connection, collection, options);
  try {
    for (;;) {
      const step = await follower.next();
      if (step) yield step;
    }
  } catch (error) {
    if (!connection.isEnded(options)) throw error;
  }
}

/** What is known of a copy that follows a collection. */
class Follower<Item extends AnyRecord> {
  readonly #connection: Connection;
  readonly #collection: string;
  readonly #every: number;
  /** Until something has come, what fails may have been set up wrongly: it is not waited for without end. */
  #patience: Patience;
  #version: number | undefined;
  /** Of a copy that began before this mirror, the records are not known. */
  #proof: CopyProof | undefined;
  /** The set digest of this version, as the service sent it; `null` if it sent none. */
  #digest: string | null = null;
  #canWait = true;
  /** Until when a process of the service may not know of the version yet. */
  #settlesAt = 0;

  constructor(connection: Connection, collection: string, options: MirrorOptions) {
    this.#connection = connection;
    this.#collection = collection;
    this.#every = options.every ?? 60;
    this.#patience = { signal: options.signal, onServiceError: options.onServiceError };
    this.#version = options.since;
  }

  /** The next step; nothing where there is none yet. */
  async next(): Promise<MirrorStep<Item> | undefined> {
    const since = this.#version;
    const step = since === undefined ? await this.#snapshot() : await this.#changes(since);
    this.#patience = { ...this.#patience, tries: Infinity };
    if (step) {
      this.#version = step.version;
      this.#digest = step.digest?.set ?? null;
      this.#settlesAt = Date.now() + settling * this.#connection.timing.secondMs;
    }
    return step;
  }

  async #snapshot(): Promise<MirrorStep<Item>> {
    for (let tries = 1; ; tries += 1) {
      try {
        return await this.#snapshotOnce();
      } catch (error) {
        const isOther = error instanceof MedrefError && (error.status === 410 || error.name === mismatch);
        if (!isOther || tries === snapshots) throw error;
        // Nothing of it was given yet. Its version was let go meanwhile, or it was spoilt on its way.
        this.#patience.onServiceError?.(error);
        await this.#connection.pause(growing(tries), this.#patience);
      }
    }
  }

  async #snapshotOnce(): Promise<MirrorStep<Item>> {
    const read: ReadVersion = { version: undefined, digest: undefined };
    const records: Item[] = [];
    const proof = new CopyProof();
    for await (const line of readLines(this.#connection, this.#collection, { read, ...this.#patience })) {
      const record = recordIn<Item>(line);
      records.push(record);
      proof.put(idOf(record), line);
    }
    const { version, digest } = read as ProvenVersion;
    this.#proof = proof;
    return { kind: 'snapshot', version, digest, records };
  }

  async #changes(since: number): Promise<MirrorStep<Item> | undefined> {
    const askedAt = Date.now();
    const read: ReadVersion = { version: undefined, digest: undefined };
    const changes: Change<Item>[] = [];
    try {
      const asked = { query: { since }, read, wait: this.#canWait ? wait : undefined, ...this.#patience };
      for await (const it of readPages<Change<Item>>(this.#connection, `${this.#collection}/changes`, asked))
        changes.push(it);
    } catch (error) {
      return this.#refused(error);
    }
    const { version, digest } = read as ProvenVersion;
    if (version === since) {
      // Another installation may have given the same number to another content, such as behind an address that moved.
      const set = digest?.set ?? null;
      this.#digest ??= set;
      if (set !== null && set !== this.#digest)
        return this.#beginAgain(otherContent(this.#collection, version));
      const passed = (Date.now() - askedAt) / this.#connection.timing.secondMs;
      // A process that ends answers at once, and is not to be asked without pause.
      await this.#connection.pause(this.#canWait ? 1 - passed : this.#every, this.#patience);
      return undefined;
    }
    for (const { id, record } of changes) this.#proof?.put(id, record && JSON.stringify(record));
    if (!this.#proof || this.#proof.set.value === (digest.set ?? this.#proof.set.value))
      return { kind: 'changes', version, digest, changes };
    return this.#beginAgain(notTheVersion(this.#collection, version));
  }

  /** What becomes of a question that was refused. */
  async #refused(error: unknown): Promise<undefined> {
    const status = error instanceof MedrefError ? error.status : 0;
    if (status === 400 && this.#canWait) {
      this.#canWait = false;
      return;
    }
    if (status !== 410) throw error;
    if (Date.now() > this.#settlesAt) return this.#beginAgain(error as MedrefError);
    // Another process of the service has answered, which does not know of the publication yet.
    this.#settlesAt = 0;
    await this.#connection.pause(settling, this.#patience);
  }

  #beginAgain(error: MedrefError): undefined {
    this.#patience.onServiceError?.(error);
    this.#version = undefined;
    this.#proof = undefined;
    this.#digest = null;
  }
}

type ProvenVersion = { readonly [Name in keyof ReadVersion]-?: NonNullable<ReadVersion[Name]> };

/** The digest of a copy, of which the records are known by their digests alone. */
class CopyProof {
  readonly set = new SetDigest();
  readonly #numbers = new Map<number, bigint>();

  /** A record has come in the place of another one, or of none; without a text, it has gone. */
  put(id: number, text: string | undefined): void {
    this.set.addNumber(-(this.#numbers.get(id) ?? 0n));
    this.#numbers.delete(id);
    if (text === undefined) return;
    const number = numberOf(text);
    this.#numbers.set(id, number);
    this.set.addNumber(number);
  }
}
