// Every read the API makes: records as the bytes that were stored at import, always of one version.

import type { ServedCollection } from '../../shared/collections/define.ts';
import type { Redis } from '../../shared/redis/connections.ts';
import { type Block, blockRecords, quarterRecords } from '../../shared/store/block.ts';
import type { Search } from '../../shared/store/search-index.ts';
import type { Version } from '../../shared/store/versions.ts';
import { ChangeLists } from './change-lists.ts';
import {
  type ChangeKind,
  type ChangeList,
  ChangeWalk,
  changeKinds,
  isKeptForChanges,
  versionsWithChanges,
} from './change-walk.ts';
import { DamageMarks } from './damage-marks.ts';
import { HashReads } from './hash-reads.ts';
import { KnownBlocks } from './known-blocks.ts';
import type { LiveVersions } from './live-versions.ts';
import { PublicationWaits } from './publication-waits.ts';
import { searchContent } from './search.ts';
import { lastingName, type Span, StoredRecords } from './stored-records.ts';
import {
  type Attempt,
  DamagedError,
  type ReadTarget,
  VersionGoneError,
  VersionReads,
  vanished,
} from './version-reads.ts';

/** A part of a list: within blocks as they are stored, or, where those are not whole, its records as JSON text. */
export interface ListRange {
  readonly version: Version;
  readonly part:
    | { readonly blocks: readonly Block[]; readonly span: Span }
    | { readonly records: readonly Buffer[] };
}

/** A part of what a search finds: records as JSON text. */
export interface SearchRange {
  readonly version: Version;
  readonly totalCount: number;
  readonly records: readonly Buffer[];
}

/** One record as JSON text; `null` when the version has none with that id. */
export interface SingleRecord {
  readonly version: Version;
  readonly record: Buffer | null;
}

/** One id whose record is another one, is new, or is gone. */
export interface Change {
  readonly id: number;
  readonly change: ChangeKind;
  /** The record as it is now; `null` when it was removed. */
  readonly record: Buffer | null;
}

/** A part of the list of changes, by id. */
export interface ChangeRange {
  /** The version at which the changes end. */
  readonly version: Version;
  readonly totalCount: number;
  readonly changes: readonly Change[];
}

/** The content of a version went away while it was read. */
export class ContentGoneError extends Error {}

/** What a read model reads by. */
export interface ReadModelOptions {
  /** What contents are read by. */
  readonly redis: Redis;
  /** What damage is marked by, where that is another one: a replica takes no writes. */
  readonly master?: Redis | undefined;
  readonly live: LiveVersions;
  readonly keyPrefix: string;
  /** Told of what is not as it was stored, as a sentence; readers are answered all the same where that can be. */
  readonly onDamage: (message: string) => void;
  /** How many requests may wait at once; tests lower it. */
  readonly maxWaiting?: number | undefined;
  /** How long a list may be of which more than places is remembered, in bytes of its text; tests lower it. */
  readonly longestRemembered?: number | undefined;
}

/**
 * Reads from the versions that importers publish. Every read throws NoVersionError, VersionGoneError, or whatever the
 * connection throws while Redis is away.
 */
export class ReadModel {
  readonly #redis: Redis;
  readonly #marks: DamageMarks;
  readonly #stored: StoredRecords;
  readonly #hashes: HashReads;
  readonly #versions: VersionReads;
  readonly #changeLists = new ChangeLists();
  /** Those who wait until another version is live. */
  readonly waits: PublicationWaits;

  constructor({ redis, master = redis, live, keyPrefix, onDamage, ...limits }: ReadModelOptions) {
    const marks = new DamageMarks(master, onDamage);
    this.#marks = marks;
    this.#redis = redis;
    const hashes = new HashReads(redis);
    this.#hashes = hashes;
    this.#stored = new StoredRecords(hashes, marks, new KnownBlocks(limits.longestRemembered));
    this.#versions = new VersionReads({ redis, live, keyPrefix, marks });
    this.waits = new PublicationWaits(live, limits.maxWaiting);
  }

  /** The version that a read is to be answered from. */
  async target(served: ServedCollection, pin: number | undefined): Promise<ReadTarget> {
    return this.#versions.target(served, pin);
  }

  /** The versions of a collection that are kept, the latest first. */
  async keptVersions(served: ServedCollection): Promise<readonly Version[]> {
    return this.#versions.kept(served);
  }

  /** Which version of each of these collections is live, by name; `null` where none is. Asks Redis, whatever is known. */
  async liveVersions(served: readonly ServedCollection[]): Promise<ReadonlyMap<string, Version | null>> {
    return this.#versions.live(served);
  }

  /** Records in list order; beyond the end there are none. */
  async list(target: ReadTarget, span: Span): Promise<ListRange> {
    return this.#versions.read(target, async (attempt) => {
      const { version } = attempt;
      const { from } = span;
      const count = Math.max(0, Math.min(span.count, version.totalCount - from));
      if (count === 0) return (await this.#hasList(attempt)) ? { version, part: { records: [] } } : vanished;
      const byBlocks = async () => {
        const blocks = await this.#stored.blocks(attempt, { from, count });
        return blocks && { blocks, span: { from: from % blockRecords, count } };
      };
      const byRecords = async () => {
        const records = await this.#stored.at(attempt, { from, count });
        return records && { records };
      };
      // To inflate a quarter of a block takes longer than to read so few records by themselves.
      const isLastQuarter = from % quarterRecords === 0 && from + count === version.totalCount;
      const isFew = count < quarterRecords && !isLastQuarter && !this.#stored.remembers(version);
      const [first, second] = isFew ? [byRecords, byBlocks] : [byBlocks, byRecords];
      const found = (await first()) ?? (await second());
      return found ? { version, part: found } : vanished;
    });
  }

  /**
   * All records in list order, a line each, in pieces that are read as they are asked for; the first one is read already.
   * The pieces throw ContentGoneError where the content of the version goes away meanwhile, and DamagedError where it is
   * not as long as it was.
   */
  async lines(target: ReadTarget): Promise<{ version: Version; lines: AsyncGenerator<Buffer, void> }> {
    return this.#versions.read(target, async (attempt) => {
      const first = await this.#linesFrom(attempt, 0);
      return first ? { version: attempt.version, lines: this.#allLines(attempt, first) } : vanished;
    });
  }

  async *#allLines(attempt: Attempt, first: readonly Buffer[]): AsyncGenerator<Buffer, void> {
    const { version } = attempt;
    let left = version.linesLength;
    for (let from = 0; from === 0 || from < version.totalCount; from += linesAtOnce) {
      const pieces = from === 0 ? first : await this.#linesFrom(attempt, from);
      if (!pieces) throw new ContentGoneError(`Version ${version.version} went away while it was sent.`);
      for (const piece of pieces) {
        left -= piece.length;
        if (left < 0) throw this.#otherLength(attempt); // The length was told: more would be taken for the next answer.
        yield piece;
      }
    }
    if (left > 0) throw this.#otherLength(attempt);
  }

  #otherLength({ keys, version }: Attempt): DamagedError {
    const message = `The records of version ${version.version} are not as long as they were when it was published.`;
    this.#marks.found(keys, version, message);
    return new DamagedError(message);
  }

  async #linesFrom(attempt: Attempt, from: number): Promise<Buffer[] | null> {
    const count = Math.min(linesAtOnce, attempt.version.totalCount - from);
    return this.#stored.lines(attempt, { from, count });
  }

  /** Returns a page of what a search finds. */
  async search(target: ReadTarget, search: Search, span: Span): Promise<SearchRange> {
    return this.#versions.read(target, async (attempt) => {
      const { version, part } = attempt;
      const content = {
        redis: this.#redis,
        hashes: this.#hashes,
        collection: target.served.collection,
        keys: part.content(version.content),
        facts: version,
      };
      const found = await searchContent(content, search, span);
      const records = found && (await this.#stored.byIds(attempt, found.ids));
      return found && records ? { version, totalCount: found.totalCount, records } : vanished;
    });
  }

  /** The records with these ids, in this order, those that there are. @param ids decimal digits without leading zeros, each once */
  async byIds(target: ReadTarget, ids: readonly string[], { from, count }: Span): Promise<SearchRange> {
    return this.#versions.read(target, async (attempt) => {
      const { version } = attempt;
      const records = await this.#stored.present(attempt, ids);
      if (!records || (records.length < ids.length && !(await this.#hasAll(attempt)))) return vanished;
      return { version, totalCount: records.length, records: records.slice(from, from + count) };
    });
  }

  /** One record. @param id decimal digits without leading zeros */
  async byId(target: ReadTarget, id: string): Promise<SingleRecord> {
    return this.#versions.read(target, async (attempt) => {
      const { version } = attempt;
      const record = await this.#stored.byId(attempt, id);
      if (record === null) return vanished;
      if (record) return { version, record };
      return (await this.#hasAll(attempt)) ? { version, record: null } : vanished;
    });
  }

  /** Whether there is something that a page of the list could be read from. */
  async #hasList({ version, part }: Attempt): Promise<boolean> {
    const { blocks, order } = part.content(version.content);
    return (await this.#redis.exists(blocks, order)) > 0;
  }

  /** A record that Redis has lost is no record that there is not. */
  async #hasAll({ version, part }: Attempt): Promise<boolean> {
    return (await this.#redis.hlen(part.content(version.content).records)) === version.totalCount;
  }

  /**
   * What changed since the version `since`, by id.
   * @param isHeld whether the client has the answer that ends at a version already: then nothing is joined for it, and the
   * version alone is given
   */
  async changes(
    target: ReadTarget,
    { since, from, count }: Span & { since: number },
    isHeld: (version: Version) => boolean,
  ): Promise<ChangeRange | { readonly held: Version }> {
    return this.#versions.read(target, async (attempt) => {
      const { version, keys, part, isLastTry } = attempt;
      // This process may not have heard yet of a version that another one has answered from.
      if (since > version.version && !isLastTry) return vanished;
      const isEmpty = since === version.version;
      if (isEmpty) await this.#reach(keys.live);
      else await this.#requireChanges(target.served, { since, version, keys });
      if (isHeld(version)) return { held: version };
      const list = isEmpty
        ? noChanges
        : await this.#changeList(target.served, { since, version, keys, part });
      const ids = [...list.ids.subarray(from, from + count)];
      const kinds = [...list.kinds.subarray(from, from + count)].map(
        (kind) => changeKinds[kind] as ChangeKind,
      );
      const present = ids.filter((_id, n) => kinds[n] !== 'removed').map(String);
      const records = await this.#stored.byIds(attempt, present);
      if (!records) return vanished;
      const left = [...records];
      const changes = ids.map((id, n) => {
        const change = kinds[n] as ChangeKind;
        return { id, change, record: change === 'removed' ? null : (left.shift() as Buffer) };
      });
      return { version, totalCount: list.ids.length, changes };
    });
  }

  /** Whether nothing was published since the version `since`. */
  async isLatest(served: ServedCollection, since: number): Promise<boolean> {
    const { version } = (await this.target(served, undefined)).version;
    if (since <= version) return since === version;
    // Another process may have answered from a version that this one has not heard of yet.
    return (await this.liveVersions([served])).get(served.collection.name)?.version === since;
  }

  /** Which ids changed since the version `since`, by id, all of them, without their records. */
  async changedIds(
    target: ReadTarget,
    since: number,
  ): Promise<{ readonly version: Version; readonly list: ChangeList }> {
    return this.#versions.read(target, async ({ version, keys, part }) => {
      if (since === version.version) return { version, list: noChanges };
      await this.#requireChanges(target.served, { since, version, keys });
      const list = await this.#changeList(target.served, { since, version, keys, part });
      return { version, list };
    });
  }

  /** Throws while Redis is away: nothing is said then, not even that there is nothing. */
  async #reach(key: string): Promise<void> {
    await this.#redis.exists(key);
  }

  /** @throws VersionGoneError where changes since a version are not kept */
  async #requireChanges(
    { collection }: ServedCollection,
    { since, version, keys }: Pick<Attempt, 'version' | 'keys'> & { since: number },
  ): Promise<void> {
    if (since < version.version && (await isKeptForChanges(this.#redis, keys, since))) return;
    const [oldest] = await this.#redis.zrange(keys.changeSets, 0, '0');
    throw new VersionGoneError(
      `Changes of ${collection.name} since version ${since} are not kept, or it was never published here; ` +
        `they are kept from published versions since ${oldest}. Read the whole list again.`,
    );
  }

  /** @throws VersionGoneError where Redis has lost a change set */
  async #changeList(
    { collection }: ServedCollection,
    { since, version, keys, part }: Pick<Attempt, 'version' | 'keys' | 'part'> & { since: number },
  ): Promise<ChangeList> {
    const ending = lastingName(part.changeSet(version.version), version);
    const begin = async () =>
      new ChangeWalk(this.#redis, part, await versionsWithChanges(this.#redis, keys, version.version));
    const list = await this.#changeLists.get({ ending, since, begin });
    if (list) return list;
    throw new VersionGoneError(
      `Redis has lost a part of what changed of ${collection.name} since version ${since}; read the whole list again.`,
    );
  }
}

/** How many records are read at once to be streamed: some blocks. */
const linesAtOnce = 2 * blockRecords;

const noChanges: ChangeList = { ids: new Float64Array(), kinds: new Uint8Array() };
