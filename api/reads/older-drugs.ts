// Searches by drug in a content whose index has none, as releases before this one stored it: all of its list is read once,
// and which records each drug has is remembered, for one process that serves.

import { LRUCache } from 'lru-cache';
import type { Collection } from '../../shared/collections/define.ts';
import {
  bytes,
  entriesAt,
  namesRange,
  type Search,
  unrankedEntryOf,
} from '../../shared/formats/search-entries.ts';
import { blockRecords } from '../../shared/store/block.ts';
import type { Version } from '../../shared/store/versions.ts';
import type { StoredRecords } from './stored-records.ts';
import type { Attempt } from './version-reads.ts';

/** How many contents are remembered; the next import stores the live one with an index that has drugs. */
const maxContents = 4;

/** How many records are read, and looked at, in one turn of the event loop. */
const recordsAtOnce = blockRecords;

/** The ids of the records of each drug, in list order. */
type DrugIds = ReadonlyMap<number, readonly number[]>;

/** A content to be searched: that of an attempt, where the collection has drugs. */
export interface OlderContent extends Pick<Attempt, 'version' | 'keys' | 'part'> {
  /** Differs from that of any other content. */
  readonly name: string;
  readonly collection: Collection;
}

/** Searches by drug. Throws what the connection throws. */
export class OlderDrugs {
  readonly #stored: StoredRecords;
  readonly #contents: LRUCache<string, DrugIds, OlderContent>;

  constructor(stored: StoredRecords) {
    this.#stored = stored;
    this.#contents = new LRUCache({
      max: maxContents,
      fetchMethod: async (_name, _stale, { context }) => (await this.#walk(context)) ?? undefined,
    });
  }

  /** The ids of what a search with a drug finds, in the order of its results; `null` where not all records are there and whole. */
  async search(content: OlderContent, { name, barcode, drug }: Search): Promise<string[] | null> {
    const drugs = await this.#contents.fetch(content.name, { context: content, ignoreFetchAbort: true });
    if (!drugs) return null;
    const ids = (drugs.get(drug as number) ?? []).map(String);
    return name === undefined && barcode === undefined ? ids : this.#choose(content, ids, { name, barcode });
  }

  async #walk(content: OlderContent): Promise<DrugIds | null> {
    const { collection } = content;
    const { totalCount }: Version = content.version;
    const drugs = new Map<number, number[]>();
    for (let from = 0; from < totalCount; from += recordsAtOnce) {
      const span = { from, count: Math.min(recordsAtOnce, totalCount - from) };
      const lines = await this.#stored.lines(content, span);
      if (!lines) return null;
      for (const line of lines.join('').split('\n').slice(0, -1)) {
        const record: unknown = JSON.parse(line);
        const drug = collection.exactSearches['drug']?.valuesOf(record)[0] as number;
        const id = collection.idOf(record);
        const ids = drugs.get(drug);
        if (ids) ids.push(id);
        else drugs.set(drug, [id]);
      }
    }
    return drugs;
  }

  /** Those of the records that have the name and the barcode; by the name, where there is one. */
  async #choose(
    content: OlderContent,
    ids: readonly string[],
    { name, barcode }: Search,
  ): Promise<string[] | null> {
    const { collection } = content;
    const names = name === undefined ? null : namesRange(name);
    const chosen: { id: string; entry: string }[] = [];
    for (let from = 0; from < ids.length; from += recordsAtOnce) {
      const some = ids.slice(from, from + recordsAtOnce);
      const records = await this.#stored.byIds(content, some);
      if (!records) return null;
      for (const [n, text] of records.entries()) {
        const id = some[n] as string;
        const record: unknown = JSON.parse(text.toString());
        if (barcode !== undefined && !collection.exactSearches['barcode']?.valuesOf(record).includes(barcode))
          continue;
        const [entry] = entriesAt(
          bytes(unrankedEntryOf(collection, { record, id: Number(id), place: 0 })),
          0,
        );
        const its = entry as string;
        if (names === null || (its >= names.least && its < names.beyond)) chosen.push({ id, entry: its });
      }
    }
    if (names) chosen.sort((a, b) => (a.entry < b.entry ? -1 : 1));
    return chosen.map(({ id }) => id);
  }
}
