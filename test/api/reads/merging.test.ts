// Sorted runs of numbers become one, in turns of the event loop.

import { expect } from 'chai';
import fc from 'fast-check';
import { merged } from '../../../api/reads/merging.ts';

const runsOf = (numbers: readonly number[], length: number) =>
  Array.from({ length: Math.ceil(numbers.length / length) }, (_, n) =>
    Float64Array.from(numbers.slice(n * length, (n + 1) * length)).sort(),
  );

describe('runs that are merged', () => {
  it('are what a plain sort makes of them', async () => {
    const id = fc.oneof(fc.nat(20), fc.integer({ min: 1, max: Number.MAX_SAFE_INTEGER }));
    await fc.assert(
      fc.asyncProperty(
        fc.array(id, { maxLength: 200 }),
        fc.integer({ min: 1, max: 20 }),
        async (ids, length) => {
          const sorted = await merged(runsOf(ids, length));
          expect([...sorted]).to.deep.equal([...ids].sort((a, b) => a - b));
        },
      ),
      { numRuns: 300 },
    );
  });

  it('are none where there are none', async () => {
    expect([...(await merged([]))]).to.deep.equal([]);
    expect([...(await merged([new Float64Array()]))]).to.deep.equal([]);
  });

  it('let others have their turn far more often than a sort in one go', async () => {
    const count = 1_000_000;
    const ids = Float64Array.from({ length: count }, (_, n) => (n * 7_919) % 1_000_003);
    const runs = Array.from({ length: 100 }, (_, n) => ids.slice(n * 10_000, (n + 1) * 10_000).sort());
    const start = performance.now();
    const expected = ids.sort();
    const inOneGo = performance.now() - start;
    const turns = startTurns();
    const sorted = await merged(runs);
    const lengths = turns.end();
    expect(Buffer.from(sorted.buffer).equals(Buffer.from(expected.buffer))).to.equal(true);
    expect(lengths.length).to.be.above(100);
    // Nearly all of them: a busy machine may stand still in one.
    const long = lengths.sort((a, b) => a - b)[Math.floor(lengths.length * 0.9)];
    expect(long, `ms, against ${inOneGo} in one go`).to.be.below(inOneGo / 10);
  });
});

/** Watches how long the turns of the event loop take, in ms. */
function startTurns(): { end(): number[] } {
  let isOver = false;
  const lengths: number[] = [];
  let before = performance.now();
  const turn = () => {
    const now = performance.now();
    lengths.push(now - before);
    before = now;
    if (!isOver) setImmediate(turn);
  };
  setImmediate(turn);
  return {
    end: () => {
      isOver = true;
      return lengths;
    },
  };
}
