import { setTimeout as sleep } from 'node:timers/promises';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { expect } from 'chai';
import { oneAtATime } from '../../bin/one-at-a-time.ts';

describe('one at a time', () => {
  it('does what it is asked for in that order, and gives each its own end', async () => {
    const inTurn = oneAtATime();
    const told: string[] = [];
    const work = (name: string, ms: number) => async () => {
      told.push(`${name} begins`);
      await sleep(ms);
      told.push(`${name} ends`);
      if (name === 'bad') throw new Error('It failed.');
      return name;
    };
    const ends = await Promise.allSettled([
      inTurn(work('slow', 30)),
      inTurn(work('bad', 10)),
      inTurn(work('quick', 0)),
    ]);
    expect(told).to.deep.equal([
      ...['slow begins', 'slow ends', 'bad begins', 'bad ends', 'quick begins', 'quick ends'],
    ]);
    expect(ends.map((it) => (it.status === 'fulfilled' ? it.value : it.reason.message))).to.deep.equal([
      ...['slow', 'It failed.', 'quick'],
    ]);
  });

  it('keeps nothing of what has ended', async () => {
    setFlagsFromString('--expose-gc');
    const collectGarbage = runInNewContext('gc') as () => void;
    const inTurn = oneAtATime();
    const kept: WeakRef<object>[] = [];
    for (let n = 0; n < 20; n++) {
      await inTurn(async () => {
        const made = { n };
        kept.push(new WeakRef(made));
        return made;
      });
    }
    await sleep(0);
    collectGarbage();
    expect(kept.slice(0, -1).filter((it) => it.deref() !== undefined)).to.deep.equal([]);
  });
});
