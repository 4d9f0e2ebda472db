import { setImmediate as nextTurn } from 'node:timers/promises';
import { expect } from 'chai';
import { Turns } from '../../../api/reads/turns.ts';

describe('turns of the event loop', () => {
  it('are given to fifty each, in the order in which they were asked for', async () => {
    const turns = new Turns();
    const went: number[] = [];
    const all = Array.from({ length: 120 }, (_, n) => turns.next().then(() => went.push(n)));
    expect(turns.isBusy).to.equal(true);
    const after: number[] = [];
    while (went.length < 120) {
      await nextTurn();
      after.push(went.length);
    }
    await Promise.all(all);
    expect(after.filter((count, n) => count !== after[n - 1])).to.deep.equal([50, 100, 120]);
    expect(went).to.deep.equal(Array.from({ length: 120 }, (_, n) => n));
    expect(turns.isBusy).to.equal(false);
  });
});
