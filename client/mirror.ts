// A mirror of a collection: a snapshot, then changes. Each step is complete and verified before it is yielded.

import { type Connection, growing, type Patience } from './connection.ts';
import { type Digest, numberOf, SetDigest } from './digests.ts';
import type { Change, ReadVersion } from './lists.ts';
import { type AnyRecord, idOf, readLines, readPages, recordIn } from './lists.ts';
import { MedrefError, mismatch, notTheVersion, otherContent } from './medref-error.ts';

/** How to follow a collection. */
export interface MirrorOptions {
  /** The version of your copy; the first step has the changes since then. */
  readonly since?: number | undefined;
  /** Seconds between requests if the service is too old for long polls; 60 by default. */
  readonly every?: number | undefined;
  /** Ends the mirror, which then throws nothing. */
  readonly signal?: AbortSignal | undefined;
  /** Called for each error that the mirror recovers from: temporary errors, and data that it has to read again. */
  readonly onError?: ((error: MedrefError) => void) | undefined;
}

/** A step of a mirror. Store `version` together with your copy: the mirror continues there, as `since`. */
export type MirrorStep<Item> =
  | {
      /** The records replace your copy. */
      readonly kind: 'snapshot';
      /** The version of your copy after this step. */
      readonly version: number;
      /** The digests of this version. */
      readonly digest: Digest;
      /** All records in list order. */
      readonly records: readonly Item[];
      /** Absent. */
      readonly changes?: undefined;
    }
  | {
      /** The changes turn your copy into the version. */
      readonly kind: 'changes';
      /** The version of your copy after this step. */
      readonly version: number;
      /** The digests of this version. */
      readonly digest: Digest;
      /** By id; none if only the version number changed. */
      readonly changes: readonly Change<Item>[];
      /** Absent. */
      readonly records?: undefined;
    };

/** Seconds that the service is asked to wait; proxies often cut silent connections after 60. */
const wait = 30;
/** Seconds after a publication until all API processes know of it, with a margin. */
const settling = 2;
/** How often a whole list may fail its digest before the mirror gives up. */
const snapshots = 3;

/** Follows a collection. @throws MedrefError if retrying is useless */
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

/** The state of a mirrored copy. */
class Follower<Item extends AnyRecord> {
  readonly #connection: Connection;
  readonly #collection: string;
  readonly #every: number;
  /** Before the first success, an error may mean a wrong setup, so retries are limited. */
  #patience: Patience;
  #version: number | undefined;
  /** Absent for a copy from before this mirror, whose records are unknown. */
  #proof: CopyProof | undefined;
  /** The set digest of this version from the service; `null` if it sent none. */
  #digest: string | null = null;
  #canWait = true;
  /** Until then, an API process may not know of the version yet. */
  #settlesAt = 0;

  constructor(connection: Connection, collection: string, options: MirrorOptions) {
    this.#connection = connection;
    this.#collection = collection;
    this.#every = options.every ?? 60;
    this.#patience = { signal: options.signal, onError: options.onError };
    this.#version = options.since;
  }

  /** Returns the next step; `undefined` if there is none yet. */
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
        const isOther = error instanceof MedrefError && (error.status === 410 || error.reason === mismatch);
        if (!isOther || tries === snapshots) throw error;
        // Nothing of it was yielded yet: its version expired meanwhile, or it was damaged in transit.
        this.#patience.onError?.(error);
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
      // Another installation may use the same number for another content, for example after its address moved.
      const set = digest?.set ?? null;
      this.#digest ??= set;
      if (set !== null && set !== this.#digest)
        return this.#beginAgain(otherContent(this.#collection, version));
      const passed = (Date.now() - askedAt) / this.#connection.timing.secondMs;
      // A process that stops responds at once; requests need a pause.
      await this.#connection.pause(this.#canWait ? 1 - passed : this.#every, this.#patience);
      return undefined;
    }
    for (const { id, record } of changes) this.#proof?.put(id, record && JSON.stringify(record));
    const set = this.#proof?.set.value;
    if (set === undefined || set === (digest.set ?? set)) {
      this.#connection.verified(this.#collection, { version, set });
      return { kind: 'changes', version, digest, changes };
    }
    return this.#beginAgain(notTheVersion(this.#collection, version));
  }

  /** Handles a refused request. */
  async #refused(error: unknown): Promise<undefined> {
    const status = error instanceof MedrefError ? error.status : 0;
    if (status === 400 && this.#canWait) {
      this.#canWait = false;
      return;
    }
    if (status !== 410) throw error;
    if (Date.now() > this.#settlesAt) return this.#beginAgain(error as MedrefError);
    // Another API process responded, which does not know of the publication yet.
    this.#settlesAt = 0;
    await this.#connection.pause(settling, this.#patience);
  }

  #beginAgain(error: MedrefError): undefined {
    this.#patience.onError?.(error);
    this.#version = undefined;
    this.#proof = undefined;
    this.#digest = null;
  }
}

type ProvenVersion = { readonly [Name in keyof ReadVersion]-?: NonNullable<ReadVersion[Name]> };

/** The digest of a copy, computed from the digests of its records. */
class CopyProof {
  readonly set = new SetDigest();
  readonly #numbers = new Map<number, bigint>();

  /** Adds or replaces a record; without a text, removes it. */
  put(id: number, text: string | undefined): void {
    this.set.addNumber(-(this.#numbers.get(id) ?? 0n));
    this.#numbers.delete(id);
    if (text === undefined) return;
    const number = numberOf(text);
    this.#numbers.set(id, number);
    this.set.addNumber(number);
  }
}
