// Compares two versions of a collection: which records differ and how, a page of them, and how often each field differs.

import { setImmediate as nextTurn } from 'node:timers/promises';
import { LRUCache } from 'lru-cache';
import { differingMembers } from '../../shared/text.ts';
import { type ChangeKind, changeKinds } from './changes.ts';
import type { ReadModel } from './read-model.ts';
import type { ReadTarget } from './versions.ts';

/** Two kept versions, the earlier one first. */
export interface ComparedVersions {
  readonly from: ReadTarget;
  readonly to: ReadTarget;
}

/** A record that differs; JSON text. */
export interface ComparedRecord {
  readonly id: string;
  readonly before: string | null;
  readonly after: string | null;
}

/** How often each field differs among changed records. */
export interface MemberCounts {
  /** How many of the changed records were compared. */
  readonly compared: number;
  readonly changed: number;
  /** Field names such as `product.name` with the number of records that differ in them, most frequent first. */
  readonly members: readonly (readonly [name: string, records: number])[];
}

/** At most this many changed records are compared field by field; the result states how many were compared. */
const maxCompared = 5_000;

/** How many records are compared in one turn of the event loop. */
const comparedAtOnce = 50;

/** How many results are kept in memory: versions never change. */
const maxRemembered = 32;

/** Compares versions, with a cache for one API process. */
export class VersionComparison {
  readonly #readModel: Pick<ReadModel, 'byId' | 'changedIds'>;
  readonly #maxCompared: number;
  readonly #memberCounts = new LRUCache<string, MemberCounts, ComparedVersions>({
    max: maxRemembered,
    fetchMethod: async (_name, _stale, { context }) => this.#countMembers(context),
  });

  /** Tests lower how many records are compared. */
  constructor(
    readModel: Pick<ReadModel, 'byId' | 'changedIds'>,
    { most = maxCompared }: { readonly most?: number } = {},
  ) {
    this.#readModel = readModel;
    this.#maxCompared = most;
  }

  /** Returns the ids that differ by kind of change, each list in order. @throws VersionGoneError */
  async ids({ from, to }: ComparedVersions): Promise<Readonly<Record<ChangeKind, readonly number[]>>> {
    const { list } = await this.#readModel.changedIds(to, from.version.version);
    const ids: Record<ChangeKind, number[]> = { added: [], changed: [], removed: [] };
    for (const [n, id] of list.ids.entries())
      ids[changeKinds[list.kinds[n] as number] as ChangeKind].push(id);
    return ids;
  }

  /** Returns these records as both versions have them. */
  async records({ from, to }: ComparedVersions, ids: readonly number[]): Promise<ComparedRecord[]> {
    return Promise.all(
      ids.map(async (it) => {
        const id = String(it);
        const [before, after] = await Promise.all([this.#text(from, id), this.#text(to, id)]);
        return { id, before, after };
      }),
    );
  }

  /** Returns how often each field differs among the changed records, or among the first of them. */
  async memberCounts(versions: ComparedVersions): Promise<MemberCounts> {
    const { from, to } = versions;
    const name = [to.served.collection.name, nameOf(from), nameOf(to)].join(' ');
    return (await this.#memberCounts.fetch(name, { context: versions })) as MemberCounts;
  }

  async #countMembers(versions: ComparedVersions): Promise<MemberCounts> {
    const { changed } = await this.ids(versions);
    const looked = changed.slice(0, this.#maxCompared);
    const counts = new Map<string, number>();
    for (let at = 0; at < looked.length; at += comparedAtOnce) {
      const records = await this.records(versions, looked.slice(at, at + comparedAtOnce));
      for (const { before, after } of records) {
        for (const member of differingMembers(JSON.parse(before ?? 'null'), JSON.parse(after ?? 'null')))
          counts.set(member, (counts.get(member) ?? 0) + 1);
      }
      await nextTurn();
    }
    const members = [...counts].sort(([, a], [, b]) => b - a);
    return { compared: looked.length, changed: changed.length, members };
  }

  async #text(target: ReadTarget, id: string): Promise<string | null> {
    const { record } = await this.#readModel.byId(target, id);
    return record?.toString() ?? null;
  }
}

/** Returns a name that no other version ever has, even if Redis is emptied and filled again. */
function nameOf({ version }: ReadTarget): string {
  return `${version.version} ${version.publishedAt} ${version.checksum}`;
}
