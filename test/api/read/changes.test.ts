import { expect } from 'chai';
import { Changes, TooManyJoinsError } from '../../../api/read/changes.ts';
import { ContentCache } from '../../../api/read/records.ts';
import type { ReadTarget } from '../../../api/read/versions.ts';
import type { Redis } from '../../../shared/redis/connections.ts';
import { productKeys as keys } from '../../support/keys.ts';

describe('Changes', () => {
  /** Returns a Redis that has no change sets, and functions that release its held replies. */
  function heldRedis() {
    const held: (() => void)[] = [];
    const zrevrangebyscore = () => new Promise<string[]>((resolve) => held.push(() => resolve([])));
    return { redis: { zrevrangebyscore } as unknown as Redis, held };
  }
  const target = {
    served: { collection: { name: 'products' } },
    keys,
    part: keys,
    contentName: 'content',
    version: { version: 100 },
  } as unknown as ReadTarget;
  const nextTurn = () => new Promise((resolve) => setImmediate(resolve));

  it('joins one list at a time, and refuses the seventeenth in the queue', async () => {
    const { redis, held } = heldRedis();
    const changes = new Changes(redis, new ContentCache());
    const asked = Array.from({ length: 16 }, (_, since) => changes.since(target, since).catch(() => 'ended'));
    const refused = await changes.since(target, 50).catch((error: unknown) => error);
    expect(refused).to.be.instanceOf(TooManyJoinsError);
    for (let n = 1; n <= 16; n += 1) {
      await nextTurn();
      expect(held).to.have.length(n);
      held.at(-1)?.();
    }
    expect(await Promise.all(asked)).to.deep.equal(asked.map(() => 'ended'));
  });
});
