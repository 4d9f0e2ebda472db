// Work that many ask for at once. Out: it is done once, and all get what comes of it.

/** Shares work that is under way; nothing is remembered of what has ended. */
export class SharedWork<Result> {
  readonly #underWay = new Map<string, Promise<Result>>();

  /** What comes of the work of this name, which is begun unless it is under way. */
  get(name: string, begin: () => Promise<Result>): Promise<Result> {
    const underWay = this.#underWay.get(name);
    if (underWay) return underWay;
    const work = begin().finally(() => this.#underWay.delete(name));
    this.#underWay.set(name, work);
    return work;
  }
}
