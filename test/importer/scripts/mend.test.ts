import { expect } from 'chai';
import { LockLostError } from '../../../importer/scripts/held.ts';
import { mend } from '../../../importer/scripts/mend.ts';
import { readKeySpace } from '../../support/key-space.ts';
import { productKeys as keys } from '../../support/keys.ts';
import { document, expectError, held, useLockedRedis } from './locked-redis.ts';

describe('mend.lua', () => {
  const redis = useLockedRedis();
  const documents = new Map([7, 9].map((number) => [number, document(number)]));
  const mending = { live: document(9), documents, dropped: [keys.hold, keys.next] };

  it('drops what is damaged, and writes pointer and kept versions anew, also once more', async () => {
    await redis().mset(keys.hold, 'damage', keys.next, 'damage', keys.live, 'damage');
    await redis().zadd(keys.versions, 8, '8');
    await redis().hset(keys.versionDocuments, '8', document(8));
    await mend(redis(), held, mending);
    const once = await readKeySpace(redis());
    await mend(redis(), held, mending);
    expect(await readKeySpace(redis())).to.deep.equal(once);
    expect(await redis().get(keys.live)).to.equal(document(9));
    expect(await redis().zrange(keys.versions, 0, '-1', 'WITHSCORES')).to.deep.equal(['7', '7', '9', '9']);
    expect(await redis().hgetall(keys.versionDocuments)).to.deep.equal(Object.fromEntries(documents));
    expect(await redis().exists(keys.hold)).to.equal(0);
  });

  it('gives out no number again: the next one is above all that are kept, and above what it was', async () => {
    await mend(redis(), held, mending);
    expect(await redis().get(keys.next)).to.equal('9');
    await redis().set(keys.next, '11');
    await mend(redis(), held, { ...mending, dropped: [] });
    expect(await redis().get(keys.next)).to.equal('11');
  });

  it('writes nothing for another than the holder of the lock', async () => {
    await expectError(mend(redis(), { keys, token: 'another token' }, mending), LockLostError);
    expect(await redis().keys('*')).to.deep.equal([keys.lock]);
  });
});
