// In: records that were staged. Out: the staged content of a collection that is derived from them; of an id, the first.

import type { DerivedCollection } from '../../shared/collections/define.ts';
import type { Redis } from '../../shared/redis/connections.ts';
import { shortened } from '../../shared/shortened.ts';
import type { ContentFacts } from '../../shared/store/versions.ts';
import type { BegunVersion } from '../scripts/held.ts';
import type { Duplicate } from '../scripts/stage-records.ts';
import { type ContentRecord, ContentWriter, storedRecord } from './content-writer.ts';

/** How many ids a warning names. */
const maxNamed = 10;

/** How many characters of a record it shows. */
const maxShown = 200;

/** Stages what is derived from the records of a version. */
export class DerivedWriter {
  readonly #derived: DerivedCollection;
  readonly #content: ContentWriter;
  /** Ids that came again with another record, the first ones of them. */
  readonly #contradicted = new Map<number, string>();
  #contradictions = 0;
  /** Settled when all batches so far are counted, in their order. */
  #counted: Promise<unknown> = Promise.resolve();

  constructor(redis: Redis, begun: BegunVersion, derived: DerivedCollection) {
    this.#derived = derived;
    const { collection } = derived;
    this.#content = new ContentWriter(redis, begun, begun.keys.derived(collection.name), collection);
  }

  /** Of the derived collection. */
  get name(): string {
    return this.#derived.collection.name;
  }

  /** Writes what is derived from these records and did not come before. @throws LockLostError; whatever Redis answers with */
  async write(sources: readonly ContentRecord[]): Promise<void> {
    const found = this.#distinct(sources);
    const counted = Promise.all([this.#content.stageRecords(found), this.#counted]).then(([duplicates]) =>
      this.#count(found, duplicates),
    );
    this.#counted = counted;
    await this.#content.stageListing(await counted);
  }

  /** @returns the records that did not come before */
  #count(found: readonly ContentRecord[], duplicates: readonly Duplicate[]): ContentRecord[] {
    const again = new Set<number>();
    for (const { index, firstPosition, isSame } of duplicates) {
      again.add(index);
      if (!isSame) this.#contradict(found[index] as ContentRecord, firstPosition);
    }
    return found.filter((_record, index) => !again.has(index));
  }

  async finish(): Promise<ContentFacts> {
    return this.#content.finish();
  }

  /** What an operator should know, as sentences. */
  warnings(): string[] {
    if (this.#contradictions === 0) return [];
    const named = [...this.#contradicted.values()].join('; ');
    const more = this.#contradictions > this.#contradicted.size ? '; and others' : '';
    return [`Of ${this.name} with the same id and another content, the first one stays: ${named}${more}.`];
  }

  /** Each derived record once, where it first appears. */
  #distinct(sources: readonly ContentRecord[]): ContentRecord[] {
    const { collection, recordOf } = this.#derived;
    const found = new Map<string, ContentRecord>();
    for (const { position, record: source } of sources) {
      const record = recordOf(source);
      const json = JSON.stringify(record);
      const id = collection.idOf(record);
      if (!found.has(json)) found.set(json, { position, id, json, stored: storedRecord(id, json), record });
    }
    return [...found.values()];
  }

  #contradict({ id, position, json }: ContentRecord, firstPosition: number): void {
    if (this.#contradicted.has(id)) return;
    this.#contradictions += 1;
    if (this.#contradicted.size >= maxNamed) return;
    this.#contradicted.set(
      id,
      `id ${id}, at position ${firstPosition} not ${shortened(json, maxShown)} as at ${position}`,
    );
  }
}
