import { expect } from 'chai';
import { begin } from '../../../importer/scripts/begin.ts';
import { LockLostError } from '../../../importer/scripts/held.ts';
import { loadScript } from '../../../importer/scripts/script.ts';
import { productKeys as keys } from '../../support/keys.ts';
import { expectError, held, lifetimeMs, useLockedRedis } from './locked-redis.ts';

describe('begin.lua', () => {
  const redis = useLockedRedis();

  const beginOnce = (name = '') => begin(redis(), held, { name, lifetimeMs });
  /** The time as a number, by another road than the script's. */
  const timeAsNumber = (time: Date) => Number(time.toISOString().replace(/\D/g, '').slice(0, 14));

  it('numbers by the time, UTC, to the second', async () => {
    const before = timeAsNumber(new Date());
    const number = await beginOnce();
    expect(number).to.be.within(before, timeAsNumber(new Date()));
    expect(await redis().get(keys.next)).to.equal(String(number));
    expect(await redis().smembers(keys.staged)).to.deep.equal([String(number)]);
    expect(await redis().pttl(keys.staged)).to.be.within(1, lifetimeMs);
  });

  it('knows the calendar', async () => {
    const days = [
      '1970-01-01',
      '1999-12-31',
      '2000-02-29',
      '2000-03-01',
      '2023-02-28',
      '2024-02-29',
      '2024-12-31',
    ];
    const later = [
      '2026-11-22',
      '2027-01-01',
      '2027-03-01',
      '2036-02-29',
      '2099-12-31',
      '2100-02-28',
      '2100-03-01',
    ];
    const { text } = loadScript('begin');
    const calendar = text.slice(text.indexOf('local function timeAsNumber'), text.indexOf('local name'));
    for (const day of [...days, ...later]) {
      for (const clock of ['00:00:00', '09:08:07', '23:59:59']) {
        const time = new Date(`${day}T${clock}Z`);
        const lua = `${calendar} return string.format('%.0f', timeAsNumber(tonumber(ARGV[1])))`;
        const told = await redis().eval(lua, 0, time.getTime() / 1000);
        expect(Number(told), `${day} ${clock}`).to.equal(timeAsNumber(time));
      }
    }
  });

  it('gives one more than the last number where the time is not later, whatever still tells of that', async () => {
    const first = Number(await beginOnce());
    expect(await beginOnce()).to.be.within(first + 1, first + 2);
    const ahead = 30_000_101_000_000;
    const tells: Record<string, () => Promise<unknown>> = {
      'the number given out last': () => redis().set(keys.next, ahead),
      'a kept version': () => redis().zadd(keys.versions, ahead, ahead, 5, 5),
      'a version with changes': () => redis().zadd(keys.changeSets, ahead, ahead, 5, 5),
      'a version, where the number given out last is none': async () => {
        await redis().set(keys.next, 'damaged');
        await redis().zadd(keys.versions, ahead, ahead);
      },
    };
    for (const [what, tell] of Object.entries(tells)) {
      await redis().del(keys.next, keys.versions, keys.changeSets);
      await tell();
      expect([await beginOnce(), await beginOnce()], what).to.deep.equal([ahead + 1, ahead + 2]);
    }
  });

  it('stages under a name that takes no number', async () => {
    expect(await beginOnce('dry-run-1')).to.equal('dry-run-1');
    expect(await redis().exists(keys.next)).to.equal(0);
    expect(await redis().smembers(keys.staged)).to.deep.equal(['dry-run-1']);
  });

  it('gives nothing without the lock', async () => {
    await redis().set(keys.lock, 'another token');
    await expectError(beginOnce(), LockLostError);
    expect(await redis().exists(keys.next, keys.staged)).to.equal(0);
  });
});
