// In: two versions of a collection. Out: which records differ, by what became of them, a page of them with both records,
// and how often each member differs.

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

/** How often each member differs among changed records. */
export interface MemberCounts {
  /** How many records were compared, of how many that changed. */
  readonly compared: number;
  readonly changed: number;
  /** The most often first: the name of a member such as `product.name`, and in how many records it differs. */
  readonly members: readonly (readonly [name: string, records: number])[];
}

/** How many changed records are compared by their members, for all that an operator asks; beyond, it is said. */
const maxCompared = 5_000;

/** How many of them are compared in one turn of the event loop. */
const comparedAtOnce = 50;

/** How many results are remembered: versions never change. */
const maxRemembered = 32;

/** Compares versions for one process that serves. */
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

  /** The ids that differ, by what became of them, each in order. @throws VersionGoneError */
  async ids({ from, to }: ComparedVersions): Promise<Readonly<Record<ChangeKind, readonly number[]>>> {
    const { list } = await this.#readModel.changedIds(to, from.version.version);
    const ids: Record<ChangeKind, number[]> = { added: [], changed: [], removed: [] };
    for (const [n, id] of list.ids.entries())
      ids[changeKinds[list.kinds[n] as number] as ChangeKind].push(id);
    return ids;
  }

  /** These records as they are in both versions. */
  async records({ from, to }: ComparedVersions, ids: readonly number[]): Promise<ComparedRecord[]> {
    return Promise.all(
      ids.map(async (it) => {
        const id = String(it);
        const [before, after] = await Promise.all([this.#text(from, id), this.#text(to, id)]);
        return { id, before, after };
      }),
    );
  }

  /** How often each member differs among the changed records, or the first of them. */
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

/** A name that no other version ever has, also where Redis is emptied and filled again. */
function nameOf({ version }: ReadTarget): string {
  return `${version.version} ${version.publishedAt} ${version.checksum}`;
}
