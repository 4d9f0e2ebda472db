// Change lists that were joined a moment ago, for one process that serves: what two versions differ in never changes.

import type { ChangeList } from './change-list.ts';

/** How many lists are remembered, and how many ids in all of them: 9 bytes each. */
const maxLists = 16;
const maxIds = 2_000_000;

/** How many lists are joined at the same time; others wait, so that other reads go on. */
const maxJoins = 1;

/** Remembers the lists that were asked for last; those who ask for the same one share one join. */
export class ChangeLists {
  readonly #lists = new Map<string, ChangeList>();
  readonly #joins = new Map<string, Promise<ChangeList | null>>();
  readonly #waiting: (() => void)[] = [];
  #running = 0;

  /**
   * The list of a name, joined unless it is remembered.
   * @param name of which there is never another list
   * @param join throws what {@link get} then throws; `null` is not remembered
   */
  async get(name: string, join: () => Promise<ChangeList | null>): Promise<ChangeList | null> {
    const known = this.#lists.get(name);
    if (known) {
      this.#remember(name, known);
      return known;
    }
    const running = this.#joins.get(name);
    if (running) return running;
    const joining = this.#inTurn(join).finally(() => this.#joins.delete(name));
    this.#joins.set(name, joining);
    const list = await joining;
    if (list) this.#remember(name, list);
    return list;
  }

  async #inTurn<Result>(run: () => Promise<Result>): Promise<Result> {
    if (this.#running >= maxJoins) await new Promise<void>((resolve) => this.#waiting.push(resolve));
    this.#running += 1;
    try {
      return await run();
    } finally {
      this.#running -= 1;
      this.#waiting.shift()?.();
    }
  }

  /** As the one asked for last; those asked for longest ago are forgotten when there are too many. */
  #remember(name: string, list: ChangeList): void {
    this.#lists.delete(name);
    this.#lists.set(name, list);
    let ids = 0;
    for (const { ids: its } of this.#lists.values()) ids += its.length;
    for (const [oldest, { ids: its }] of this.#lists) {
      if (oldest === name || (this.#lists.size <= maxLists && ids <= maxIds)) break;
      this.#lists.delete(oldest);
      ids -= its.length;
    }
  }
}
