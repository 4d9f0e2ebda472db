// In: what is to be sent, in order. Out: the same in parts, each so small that Redis and this process take it in their stride.

/** How much a part may be. */
export interface PartBounds<Item> {
  readonly count: number;
  /** In bytes or characters, as {@link lengthOf} counts them; a single item may be longer. */
  readonly length: number;
  readonly lengthOf: (item: Item) => number;
}

/** Cuts a list into parts, none of them empty. */
export function* partsOf<Item>(
  items: readonly Item[],
  { count, length: mostLength, lengthOf }: PartBounds<Item>,
): Generator<Item[]> {
  let from = 0;
  let length = 0;
  for (const [n, item] of items.entries()) {
    const its = lengthOf(item);
    if (n > from && (n - from === count || length + its > mostLength)) {
      yield items.slice(from, n);
      from = n;
      length = 0;
    }
    length += its;
  }
  if (items.length > from) yield items.slice(from);
}
