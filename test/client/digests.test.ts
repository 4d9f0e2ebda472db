import { createHash } from 'node:crypto';
import { expect } from 'chai';
import fc from 'fast-check';
import { digestOf, type Product, SetDigest } from '../../client/client.ts';
import { PortableSha256, parseDigest, startSha256 } from '../../client/digests.ts';
import { createValidator } from '../../importer/validate.ts';
import { products as productCollection } from '../../shared/collections/products.ts';
import { setOf } from '../proof/mirror.ts';
import { product } from '../support/records.ts';

const hexOf = (bytes: Uint8Array) => Buffer.from(bytes).toString('hex');
const sha256 = (bytes: Uint8Array) => createHash('sha256').update(bytes).digest('hex');

describe('the built-in SHA-256', () => {
  it("equals Node's for each length up to three blocks", () => {
    for (let length = 0; length < 200; length += 1) {
      const bytes = Uint8Array.from({ length }, (_, n) => (n * 31 + length) % 256);
      expect(hexOf(new PortableSha256().update(bytes).digest()), `${length} bytes`).to.equal(sha256(bytes));
    }
  });

  it('is independent of how bytes are split', () => {
    const parts = fc.array(fc.uint8Array({ maxLength: 150 }), { maxLength: 6 });
    fc.assert(
      fc.property(parts, (its) => {
        const digest = new PortableSha256();
        for (const part of its) digest.update(part);
        return hexOf(digest.digest()) === sha256(Buffer.concat(its));
      }),
    );
  });

  it('is unused if Node provides one', () => {
    expect(startSha256()).not.to.be.instanceOf(PortableSha256);
  });
});

/** Texts that JSON writes in other ways: escapes, line separators, lone surrogates, characters of four bytes. */
const texts = fc.string({
  unit: fc.constantFrom('A', 'İ', '"', '\\', '\n', '\u2028', '\u0000', '😀', '\ud800', '\u007f', '/'),
});
const records: fc.Arbitrary<Product[]> = fc.array(
  fc.record({
    product: fc.record({
      id: fc.integer({ min: 1, max: Number.MAX_SAFE_INTEGER }),
      name: texts.map((it) => `A${it}`),
    }),
    drug: fc.record({ id: fc.constantFrom(1, 1e3, 1e15, Number.MAX_SAFE_INTEGER), name: fc.constant('D') }),
    drugform: fc.constant({ id: 1, name: 'F' }),
    barcodes: fc.array(fc.record({ barcode: fc.constant('8699546010017'), skrsStatus: fc.option(texts) })),
    published: fc.boolean(),
  }),
  { maxLength: 5 },
);

describe('digestOf', () => {
  it('equals the digest of an import of the same records', () => {
    const validate = createValidator(productCollection);
    fc.assert(
      fc.property(records, (its) => {
        const lines = its.map((it) => {
          const verdict = validate(it);
          expect(verdict.valid).to.equal(true);
          return verdict.valid ? verdict.json : '';
        });
        const text = lines.map((line) => `${line}\n`).join('');
        // A consumer has the records that a parser made from the lines.
        expect(digestOf(lines.map((line) => JSON.parse(line)))).to.deep.equal({
          ...{ list: createHash('sha256').update(text).digest('base64'), set: setOf(lines) },
        });
      }),
      { numRuns: 60 },
    );
  });
});

describe('SetDigest', () => {
  it('depends only on the remaining records, in any order of additions and removals', () => {
    fc.assert(
      fc.property(fc.array(fc.integer({ min: 1, max: 9 })), (ids) => {
        const copy = new Map<number, Product>();
        const digest = new SetDigest();
        for (const id of ids) {
          const record = copy.get(id);
          if (record) digest.remove(record);
          else digest.add(product(id));
          if (!copy.delete(id)) copy.set(id, product(id));
        }
        return digest.value === digestOf(copy.values()).set;
      }),
      { numRuns: 30 },
    );
  });

  it('has 32 bytes even if the first ones are zero', () => {
    expect(new SetDigest().value).to.equal(Buffer.alloc(32).toString('base64'));
  });
});

describe('a header field Medref-Digest', () => {
  it('is parsed with and without the set digest', () => {
    expect(parseDigest('list=:YQ==:, set=:Yg==:')).to.deep.equal({ list: 'YQ==', set: 'Yg==' });
    expect(parseDigest('list=:YQ==:')).to.deep.equal({ list: 'YQ==', set: null });
    expect(parseDigest('sha-256=:YQ==:')).to.equal(undefined);
    expect(parseDigest(null)).to.equal(undefined);
  });
});
