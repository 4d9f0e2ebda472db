// Change lists that are remembered: joined once for all who ask at the same time, and anew when they were forgotten.

import { setImmediate as nextTurn } from 'node:timers/promises';
import { expect } from 'chai';
import { ChangeLists } from '../../../api/reads/change-lists.ts';
import type { ChangeList } from '../../../api/reads/change-sets.ts';

const listOf = (length: number): ChangeList => ({
  ids: Float64Array.from({ length }, (_, i) => i + 1),
  kinds: new Uint8Array(length),
});

describe('change lists', () => {
  let lists: ChangeLists;
  let joined: string[];
  let underWay: number;
  let mostUnderWay: number;
  beforeEach(() => {
    lists = new ChangeLists();
    joined = [];
    underWay = 0;
    mostUnderWay = 0;
  });

  /** Asks for a list of so many ids, whose join takes a few turns of the event loop. */
  const ask = (name: string, length = 3) =>
    lists.get(name, async () => {
      joined.push(name);
      underWay += 1;
      mostUnderWay = Math.max(mostUnderWay, underWay);
      for (let turn = 0; turn < 3; turn++) await nextTurn();
      underWay -= 1;
      return listOf(length);
    });

  /** Asks for lists one after the other. */
  async function askInTurn(names: readonly string[], length?: number): Promise<void> {
    for (const name of names) await ask(name, length);
  }

  const names = (count: number) => Array.from({ length: count }, (_, i) => `list ${i + 1}`);

  it('are joined once for all who ask at once, and not again for who asks later', async () => {
    const [first, ...others] = await Promise.all(Array.from({ length: 20 }, () => ask('a')));
    for (const other of [...others, await ask('a')]) expect(other).to.equal(first);
    expect(joined).to.deep.equal(['a']);
  });

  it('are joined one at a time, in the order in which they were asked for', async () => {
    await Promise.all(names(5).map((name) => ask(name)));
    expect(mostUnderWay).to.equal(1);
    expect(joined).to.deep.equal(names(5));
  });

  it('are 16 at most: the one asked for longest ago is forgotten, and joined again', async () => {
    await askInTurn([...names(16), 'list 1', 'list 17']);
    expect(joined).to.have.length(17);
    await askInTurn(['list 1', 'list 3', 'list 17']);
    expect(joined, 'these are remembered').to.have.length(17);
    expect((await ask('list 2'))?.ids).to.deep.equal(listOf(3).ids);
    expect(joined.slice(17)).to.deep.equal(['list 2']);
  });

  it('have two million ids at most, unless one alone has more', async () => {
    await askInTurn(names(3), 700_000);
    await askInTurn(['list 3', 'list 2', 'list 1'], 700_000);
    expect(joined).to.deep.equal([...names(3), 'list 1']);
    await ask('large', 2_000_001);
    await ask('large', 2_000_001);
    await ask('list 1');
    expect(joined.slice(4)).to.deep.equal(['large', 'list 1']);
  });

  it('are not remembered when they cannot be joined: all who wait are told, and the next one tries again', async () => {
    const failing = () =>
      lists.get('a', async () => {
        joined.push('failing');
        await nextTurn();
        throw new Error('Redis is away.');
      });
    const outcomes = await Promise.allSettled([failing(), failing()]);
    expect(outcomes.map(({ status }) => status)).to.deep.equal(['rejected', 'rejected']);
    expect(joined).to.deep.equal(['failing']);
    expect(await lists.get('a', async () => null)).to.equal(null);
    expect((await ask('a'))?.ids).to.have.length(3);
    expect(joined).to.deep.equal(['failing', 'a']);
  });
});
