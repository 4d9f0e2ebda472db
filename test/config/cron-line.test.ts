import { readFileSync } from 'node:fs';
import { expect } from 'chai';
import fc from 'fast-check';
import { validate } from 'node-cron';
import { isCronLine } from '../../config/cron-line.ts';

describe('a schedule', () => {
  const good = ['0 3 * * *', '*/5 * * * *', '15 2,14 1-7 * 1-5', ' 0\t3  * * * ', '0 0 * jan-mar,Dec SUN'];
  good.push(
    '59 23 31 12 7',
    '0 0 29 2 *',
    '0 0 30,31 feb,apr *',
    '0-59/59 0-23/5 */31 */12 */7',
    '05 03 01 01 0',
  );
  for (const line of good) {
    it(`may be "${line}"`, () => expect(isCronLine(line)).to.equal(true));
  }

  const bad = [
    '',
    '* * * *',
    '0 0 3 * * *',
    '60 3 * * *',
    '0 24 * * *',
    '0 0 0 * *',
    '0 0 32 * *',
    '0 0 * 0 *',
  ];
  bad.push('0 0 * 13 *', '0 0 * * 8', '@daily', 'never', '10-5 * * * *', '5/10 * * * *', '*/0 * * * *');
  bad.push(
    '1,,2 * * * *',
    '1-2-3 * * * *',
    '*/2/3 * * * *',
    '* * L * *',
    '* * 15W * *',
    '* * * * 1#2',
    '? * * * *',
  );
  bad.push(
    '0 0 31 feb,apr,jun,sep,nov *',
    '0 0 30 2 *',
    '1.5 * * * *',
    '0x5 * * * *',
    '+5 * * * *',
    '005 * * * *',
  );
  bad.push('mon * * * *', '0 0 jan * *', '0 0 * * jan', '0 0 * january *');
  for (const line of bad) {
    it(`may not be "${line}"`, () => expect(isCronLine(line)).to.equal(false));
  }

  it('takes what its documentation lists, and refuses what that refuses', () => {
    const page = readFileSync(new URL('../../docs/OPERATIONS.md', import.meta.url), 'utf8');
    const section = page.split('### The schedule\n')[1]?.split('\n### ')[0] ?? '';
    const items = [...section.matchAll(/^\| `([^`]+)` \|/gm)].map(([, it]) => it);
    expect(items).to.have.length.of.at.least(5);
    for (const it of items) expect(isCronLine(`${it} 0 * * *`), it).to.equal(true);
    const refused = [...(/^Nothing else is taken: ([^.]+)/m.exec(section)?.[1] ?? '').matchAll(/`([^`]+)`/g)];
    expect(refused).to.have.length.of.at.least(4);
    for (const [, it] of refused) expect(isCronLine(`0 0 ${it} * *`), it).to.equal(false);
    const fields = [...section.matchAll(/^\| [a-z ]+ \| `(\w+)` to `(\w+)`(?:, or `(\w+)` to `(\w+)`)?/gm)];
    expect(fields).to.have.length(5);
    for (const [n, [, ...ends]] of fields.entries()) {
      for (const end of ends.filter((it) => it !== undefined)) {
        expect(isCronLine(Object.assign(Array(5).fill('*'), { [n]: end }).join(' ')), end).to.equal(true);
      }
    }
  });

  it('is one to the scheduler, too', () => {
    const value = fc.oneof(fc.nat(61).map(String), fc.constantFrom('jan', 'dec', 'sun', 'sat', 'x'));
    const item = fc.oneof(
      fc.constant('*'),
      value,
      fc.tuple(value, value).map((ends) => ends.join('-')),
      fc.nat(9).map((step) => `*/${step}`),
      fc.tuple(value, value, fc.nat(9)).map(([from, to, step]) => `${from}-${to}/${step}`),
    );
    const field = fc.array(item, { minLength: 1, maxLength: 2 }).map((items) => items.join(','));
    const anyField = fc.oneof({ weight: 3, arbitrary: fc.constant('*') }, { weight: 1, arbitrary: field });
    let accepted = 0;
    fc.assert(
      fc.property(fc.array(anyField, { minLength: 5, maxLength: 5 }), (fields) => {
        const line = fields.join(' ');
        if (!isCronLine(line)) return;
        accepted += 1;
        expect(validate(line), line).to.equal(true);
      }),
      { numRuns: 5_000 },
    );
    expect(accepted).to.be.above(500);
  });
});
