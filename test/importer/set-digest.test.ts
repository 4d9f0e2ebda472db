import { hash } from 'node:crypto';
import { expect } from 'chai';
import fc from 'fast-check';
import { SetDigest } from '../../importer/content-writer.ts';

describe('the digest of a set of records', () => {
  const sumOf = (digests: readonly Buffer[]) => {
    const set = new SetDigest();
    for (const digest of digests) set.add(digest);
    return set.hex();
  };
  const expected = (digests: readonly Buffer[]) =>
    (digests.reduce((sum, it) => sum + BigInt(`0x${it.toString('hex')}`), 0n) % 2n ** 256n)
      .toString(16)
      .padStart(64, '0');

  it('is the sum of what it is given, modulo 2^256, in any order', () => {
    const anyDigests = fc.array(
      fc.uint8Array({ minLength: 32, maxLength: 32 }).map((bytes) => Buffer.from(bytes)),
      { maxLength: 40 },
    );
    fc.assert(
      fc.property(anyDigests, (digests) => {
        expect(sumOf(digests)).to.equal(expected(digests));
        expect(sumOf([...digests].reverse())).to.equal(expected(digests));
      }),
    );
    const most = Buffer.alloc(32, 0xff);
    expect(sumOf([most, most, Buffer.from('1'.padStart(64, '0'), 'hex')])).to.equal('f'.repeat(64));
  });

  it('stays exact however many there are', function () {
    this.timeout(20_000);
    const set = new SetDigest();
    const most = Buffer.alloc(32, 0xff);
    const count = 2 ** 21 + 5;
    for (let n = 0; n < count; n += 1) set.add(most);
    const sum = ((2n ** 256n - 1n) * BigInt(count)) % 2n ** 256n;
    expect(set.hex()).to.equal(sum.toString(16).padStart(64, '0'));
    set.add(hash('sha256', 'one more', 'buffer'));
    const more = BigInt(`0x${hash('sha256', 'one more')}`);
    expect(set.hex()).to.equal(((sum + more) % 2n ** 256n).toString(16).padStart(64, '0'));
  });
});
