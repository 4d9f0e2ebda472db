// Groups the rejects of an import by cause: one fault of upstream usually rejects many records.

import { causeOf, type RejectCause } from '../shared/import-history.ts';
import { truncate } from '../shared/text.ts';

/** How many causes are kept; further ones are counted together. */
const maxCauses = 20;
const maxPathLength = 200;

/** Counts rejects by cause. */
export class RejectCauses {
  readonly #causes = new Map<string, { cause: Omit<RejectCause, 'count' | 'renamed'>; count: number }>();
  /** How often each unknown member was similar to a missing one, by cause. */
  readonly #similar = new Map<string, Map<string, number>>();
  #others = 0;

  /** Adds a reject. @param similar an unknown member of its record that is similar to the missing one */
  add(
    { position, path, reason }: { position: number; path: string; reason: string },
    similar?: string,
  ): void {
    const its = causeOf({ path, reason });
    const cause = { path: truncate(its.path, maxPathLength), reason: its.reason, position };
    const key = `${cause.path} ${cause.reason}`;
    const known = this.#causes.get(key);
    if (!known && this.#causes.size >= maxCauses) {
      this.#others += 1;
      return;
    }
    this.#causes.set(key, { cause: known?.cause ?? cause, count: (known?.count ?? 0) + 1 });
    if (similar === undefined) return;
    const names = this.#similar.get(key) ?? new Map<string, number>();
    names.set(similar, (names.get(similar) ?? 0) + 1);
    this.#similar.set(key, names);
  }

  /** Returns the causes, the most frequent first. */
  list(): RejectCause[] {
    const causes = [...this.#causes].map(([key, { cause, count }]): RejectCause => {
      const [name, times] = [...(this.#similar.get(key) ?? [])].sort(([, a], [, b]) => b - a)[0] ?? ['', 0];
      return { ...cause, count, renamed: times * 2 > count ? name : null };
    });
    causes.sort((a, b) => b.count - a.count);
    if (this.#others === 0) return causes;
    return [
      ...causes,
      { path: '$', reason: 'has another fault', position: 0, count: this.#others, renamed: null },
    ];
  }
}
