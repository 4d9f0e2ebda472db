// Every read of the API: records as the bytes that the import stored, always of one version.

import type { ServedCollection } from '../../shared/collections/define.ts';
import type { Redis } from '../../shared/redis/connections.ts';
import { type Block, blockRecords } from '../../shared/store/block.ts';
import type { Search } from '../../shared/store/search-index.ts';
import type { Version } from '../../shared/store/versions.ts';
import { type ChangeKind, type ChangeList, Changes, changeKinds } from './changes.ts';
import type { LiveVersions } from './live-versions.ts';
import { PublicationWaits } from './publication-waits.ts';
import { ContentCache, HmgetBatcher, Records, type Span } from './records.ts';
import { SearchIndex } from './search.ts';
import {
  type CandidateTarget,
  DamagedError,
  MissingPartError,
  type ReadTarget,
  Versions,
} from './versions.ts';

/** A part of a list: within stored blocks or, if a block is not stored, its records as JSON text. */
export interface ListRange {
  readonly version: Version;
  readonly part:
    | { readonly blocks: readonly Block[]; readonly span: Span }
    | { readonly records: readonly Buffer[] };
}

/** A page of search results: records as JSON text. */
export interface SearchRange {
  readonly version: Version;
  readonly totalCount: number;
  readonly records: readonly Buffer[];
}

/** One record as JSON text; `null` if the version has none with that id. */
export interface SingleRecord {
  readonly version: Version;
  readonly record: Buffer | null;
}

/** A record that changed. */
export interface Change {
  readonly id: number;
  readonly change: ChangeKind;
  /** The current record; `null` if it was removed. */
  readonly record: Buffer | null;
}

/** A page of the list of changes, by id. */
export interface ChangeRange {
  /** The version at which the changes end. */
  readonly version: Version;
  readonly totalCount: number;
  readonly changes: readonly Change[];
}

/** The connections of a read model, and its limits. */
export interface ReadModelOptions {
  readonly redis: Redis;
  readonly live: LiveVersions;
  readonly keyPrefix: string;
  /** Called with a sentence for each damage that a read finds. */
  readonly onDamage: (message: string) => void;
  /** How many requests may wait for a publication. */
  readonly maxWaiting?: number | undefined;
  /** The size of the cache of contents, in bytes. */
  readonly cacheBytes?: number | undefined;
}

/** How many records an export reads at once: some blocks. */
const linesAtOnce = 2 * blockRecords;

/**
 * Reads the versions that importers publish. Methods throw NoVersionError, VersionGoneError, or the connection's error if Redis
 * is unavailable.
 */
export class ReadModel {
  readonly #redis: Redis;
  readonly #versions: Versions;
  readonly #records: Records;
  readonly #index: SearchIndex;
  readonly #changes: Changes;
  readonly #onDamage: (message: string) => void;
  /** The requests that wait for a publication. */
  readonly waits: PublicationWaits;

  constructor({ redis, live, keyPrefix, onDamage, maxWaiting, cacheBytes }: ReadModelOptions) {
    const hashes = new HmgetBatcher(redis);
    const cache = new ContentCache(cacheBytes);
    this.#redis = redis;
    this.#versions = new Versions({ redis, live, keyPrefix, onDamage });
    this.#records = new Records(hashes, cache);
    this.#index = new SearchIndex(redis, hashes, cache);
    this.#changes = new Changes(redis, cache);
    this.#onDamage = onDamage;
    this.waits = new PublicationWaits(live, maxWaiting);
  }

  /** Returns the version to read from: the live one, or the kept one with the number `pin`. */
  async target(served: ServedCollection, pin: number | undefined): Promise<ReadTarget> {
    return this.#versions.target(served, pin);
  }

  /** Returns the candidate of a collection; `null` if there is none. */
  async candidate(served: ServedCollection): Promise<CandidateTarget | null> {
    return this.#versions.candidate(served);
  }

  /** Returns the kept versions of a collection, the latest first. */
  async keptVersions(served: ServedCollection): Promise<readonly Version[]> {
    return this.#versions.kept(served);
  }

  /** Reads the live version of each of these collections from Redis, by name; `null` if there is none. */
  async liveVersions(served: readonly ServedCollection[]): Promise<ReadonlyMap<string, Version | null>> {
    return this.#versions.live(served);
  }

  /** Returns records in list order; none past the end. */
  async list(target: ReadTarget, span: Span): Promise<ListRange> {
    return this.#versions.read(target, async (it) => {
      const { version } = it;
      const { from } = span;
      const count = Math.max(0, Math.min(span.count, version.totalCount - from));
      if (count === 0) return { version, part: { records: [] } };
      const blocks = await this.#records.blocks(it, { from, count });
      if (blocks) return { version, part: { blocks, span: { from: from % blockRecords, count } } };
      return { version, part: { records: await this.#records.at(it, { from, count }) } };
    });
  }

  /**
   * Returns all records in list order, one per line, in pieces that are read when needed. The first piece is read before it returns.
   * The pieces throw MissingPartError if the content expires, and DamagedError if its length is wrong.
   */
  async lines(target: ReadTarget): Promise<{ version: Version; lines: AsyncGenerator<Buffer, void> }> {
    return this.#versions.read(target, async (it) => {
      const first = await this.#linesFrom(it, 0);
      return { version: it.version, lines: this.#allLines(it, first) };
    });
  }

  async *#allLines(target: ReadTarget, first: readonly Buffer[]): AsyncGenerator<Buffer, void> {
    const { version } = target;
    let left = version.linesLength;
    for (let from = 0; from === 0 || from < version.totalCount; from += linesAtOnce) {
      const pieces = from === 0 ? first : await this.#linesFrom(target, from);
      for (const piece of pieces) {
        left -= piece.length;
        if (left < 0) throw this.#otherLength(version); // Bytes past Content-Length would corrupt the next response.
        yield piece;
      }
    }
    if (left > 0) throw this.#otherLength(version);
  }

  #otherLength({ version }: Version): DamagedError {
    const message = `The records of version ${version} have another length than when it was published.`;
    this.#onDamage(message);
    return new DamagedError(message);
  }

  async #linesFrom(target: ReadTarget, from: number): Promise<Buffer[]> {
    const count = Math.min(linesAtOnce, target.version.totalCount - from);
    return this.#records.lines(target, { from, count });
  }

  /** Returns a page of search results. */
  async search(target: ReadTarget, search: Search, span: Span): Promise<SearchRange> {
    return this.#versions.read(target, async (it) => {
      const { totalCount, ids } = await this.#index.find(it, search, span);
      return { version: it.version, totalCount, records: await this.#records.byIds(it, ids) };
    });
  }

  /** Returns the records with these ids that the version has, in this order. @param ids distinct decimal digits without leading zeros */
  async byIds(target: ReadTarget, ids: readonly string[], { from, count }: Span): Promise<SearchRange> {
    return this.#versions.read(target, async (it) => {
      const found = await this.#find(it, ids);
      const records = found.filter((record) => record !== null);
      return { version: it.version, totalCount: records.length, records: records.slice(from, from + count) };
    });
  }

  /** Returns one record. @param id decimal digits without leading zeros */
  async byId(target: ReadTarget, id: string): Promise<SingleRecord> {
    return this.#versions.read(target, async (it) => {
      const [record = null] = await this.#find(it, [id]);
      return { version: it.version, record };
    });
  }

  /** Returns the record of each id; `null` if the version has none. A record that is missing in Redis throws instead. */
  async #find(target: ReadTarget, ids: readonly string[]): Promise<(Buffer | null)[]> {
    const { content, version } = target;
    const found = await this.#records.find(target, ids);
    if (found.includes(null) && (await this.#redis.hlen(content.records)) !== version.totalCount)
      throw new MissingPartError(content.records);
    return found;
  }

  /**
   * Returns a page of the changes since a version, by id.
   * @param isFresh whether the client already has the response that ends at a version. Then only that version is returned.
   */
  async changes(
    target: ReadTarget,
    { since, from, count }: Span & { since: number },
    isFresh: (version: Version) => boolean,
  ): Promise<ChangeRange | { readonly fresh: Version }> {
    return this.#versions.read(await this.#latestFor(target, since), async (it) => {
      const { version } = it;
      await this.#changes.require(it, since);
      if (isFresh(version)) return { fresh: version };
      const list = await this.#changes.since(it, since);
      const page = [...list.ids.subarray(from, from + count)].map((id, n) => ({
        id,
        change: changeKinds[list.kinds[from + n] as number] as ChangeKind,
      }));
      const present = page.filter(({ change }) => change !== 'removed').map(({ id }) => String(id));
      const records = await this.#records.byIds(it, present);
      let next = 0;
      const changes = page.map(({ id, change }) => {
        const record = change === 'removed' ? null : (records[next++] as Buffer);
        return { id, change, record };
      });
      return { version, totalCount: list.ids.length, changes };
    });
  }

  /** Reads the live version again if the client has a later one: another process may have served it first. */
  async #latestFor(target: ReadTarget, since: number): Promise<ReadTarget> {
    if (target.pin !== undefined || since <= target.version.version) return target;
    await this.#versions.live([target.served]);
    return this.#versions.target(target.served, undefined);
  }

  /** Returns the last version that was published at a time, or before it. @throws VersionGoneError */
  async versionAt(served: ServedCollection, time: Date): Promise<number> {
    const target = await this.target(served, undefined);
    return this.#versions.read(target, (it) => this.#changes.versionAt(it, time));
  }

  /** Returns whether nothing was published since the version `since`. */
  async isLatest(served: ServedCollection, since: number): Promise<boolean> {
    const { version } = await this.#latestFor(await this.target(served, undefined), since);
    return since === version.version;
  }

  /** Returns the ids that changed since the version `since`. */
  async changedIds(
    target: ReadTarget,
    since: number,
  ): Promise<{ readonly version: Version; readonly list: ChangeList }> {
    return this.#versions.read(target, async (it) => {
      if (!it.changes) await this.#changes.require(it, since);
      return { version: it.version, list: await this.#changes.since(it, since) };
    });
  }
}
