// Returns streams of random numbers that depend only on a seed, a purpose and a number.

/** Returns the next number of a stream, from 0 up to but not including 1. */
export type Random = () => number;

/** Returns the stream for the n-th thing of a kind; streams of other seeds, kinds and numbers are independent. */
export function randomFor(seed: number, kind: number, n: number): Random {
  let state = mix(mix(mix(seed) ^ kind) ^ n);
  // mulberry32, by Tommy Ettinger (public domain).
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let t = Math.imul(state ^ (state >>> 15), state | 1);
    t ^= t + Math.imul(t ^ (t >>> 7), t | 61);
    return ((t ^ (t >>> 14)) >>> 0) / 2 ** 32;
  };
}

/** Returns whether an event with this probability happens. */
export function chance(probability: number, random: Random): boolean {
  return random() < probability;
}

/** Returns one of the items, each with the same probability. */
export function pick<T>(items: readonly T[], random: Random): T {
  return items[Math.floor(random() * items.length)] as T;
}

/** Repeats each item by the number after it, to pick with these odds. */
export function repeated<T>(items: readonly (readonly [T, number])[]): T[] {
  return items.flatMap(([item, times]) => Array<T>(times).fill(item));
}

/** Returns the items in a random order. */
export function shuffled<T>(items: readonly T[], random: Random): T[] {
  const result = [...items];
  for (let last = result.length - 1; last > 0; last--) {
    const other = Math.floor(random() * (last + 1));
    [result[last], result[other]] = [result[other] as T, result[last] as T];
  }
  return result;
}

/** Spreads a 32-bit number over all 32 bits: the finalizer of MurmurHash3, by Austin Appleby (public domain). */
function mix(n: number): number {
  let h = n | 0;
  h = Math.imul(h ^ (h >>> 16), 0x85ebca6b);
  h = Math.imul(h ^ (h >>> 13), 0xc2b2ae35);
  return h ^ (h >>> 16);
}
