import { expect } from 'chai';
import { amend } from '../../../importer/scripts/amend.ts';
import { LockLostError } from '../../../importer/scripts/held.ts';
import { productKeys as keys } from '../../support/keys.ts';
import { expectError, held, useLockedRedis } from './locked-redis.ts';

describe('amend.lua', () => {
  const redis = useLockedRedis();
  const reports = async () =>
    (await redis().xrange(keys.imports, '-', '+')).map(([, [, report]]) => report as string);
  const write = async (...all: string[]) => {
    for (const report of all) await redis().xadd(keys.imports, '*', 'report', report);
  };

  it('writes a report anew, also where another import has found the lock held meanwhile; once', async () => {
    await write('before', 'published', 'locked');
    for (let i = 0; i < 2; i++) {
      await amend(redis(), held, { from: 'published', to: 'published, with a warning' });
      expect(await reports()).to.deep.equal(['before', 'locked', 'published, with a warning']);
    }
  });

  it('leaves a history that does not have the report any more', async () => {
    await write('published', ...Array.from({ length: 10 }, () => 'locked'));
    await amend(redis(), held, { from: 'published', to: 'other' });
    await amend(redis(), held, { from: 'another', to: 'other' });
    expect(await reports()).not.to.include('other');
  });

  it('does nothing for who does not hold the lock', async () => {
    await write('published');
    const another = { keys, token: 'another token' };
    await expectError(amend(redis(), another, { from: 'published', to: 'other' }), LockLostError);
    expect(await reports()).to.deep.equal(['published']);
  });
});
