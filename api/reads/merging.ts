// In: sorted runs of numbers. Out: all of them, sorted; made in turns of the event loop, so that others are answered meanwhile.

/** How many numbers are merged in one turn: a ms or two. */
const numbersAtOnce = 50_000;

/** Merges sorted runs, two by two, until there is one. */
export async function merged(runs: readonly Float64Array[]): Promise<Float64Array> {
  let left = runs;
  while (left.length > 1) {
    const longer: Float64Array[] = [];
    for (let n = 0; n < left.length; n += 2) {
      const [one, other] = [left[n] as Float64Array, left[n + 1]];
      longer.push(other ? await mergedPair(one, other) : one);
    }
    left = longer;
  }
  return left[0] ?? new Float64Array();
}

async function mergedPair(one: Float64Array, other: Float64Array): Promise<Float64Array> {
  const all = new Float64Array(one.length + other.length);
  let [a, b] = [0, 0];
  while (a + b < all.length) {
    const until = Math.min(all.length, a + b + numbersAtOnce);
    for (let n = a + b; n < until; n += 1) {
      const takesOne = b === other.length || (a < one.length && (one[a] as number) <= (other[b] as number));
      all[n] = takesOne ? (one[a++] as number) : (other[b++] as number);
    }
    await nextTurn();
  }
  return all;
}

/** Lets others have their turn of the event loop. */
export function nextTurn(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}
