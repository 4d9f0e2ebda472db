import { expect } from 'chai';
import fc from 'fast-check';
import { products as productCollection } from '../../../shared/collections/product.ts';
import { fold } from '../../../shared/formats/fold.ts';
import { beyond, bytes, entriesOf, idOf, prefixOf } from '../../../shared/formats/search-entries.ts';
import { product } from '../../support/records.ts';

const compareText = (a: string, b: string) => Buffer.compare(Buffer.from(a), Buffer.from(b));
const compareBytes = (a: string, b: string) =>
  Buffer.compare(Buffer.from(a, 'latin1'), Buffer.from(b, 'latin1'));

const id = fc.oneof(
  fc.integer({ min: 1, max: Number.MAX_SAFE_INTEGER }),
  fc.integer({ min: 1, max: 200 }),
  fc.integer({ min: 1, max: 52 }).map((power) => 2 ** power),
  fc.integer({ min: 1, max: 53 }).map((power) => 2 ** power - 1),
);
/** Few letters, so that names are beginnings of each other; among them what ends a key, and what escapes that. */
const name = fc.oneof(
  fc
    .array(fc.constantFrom('a', 'A', 'b', 'İ', '\0', '\x01', '\x02', ' ', '\x7f', 'ÿ', 'ł', '\uffff', '𝛀'), {
      maxLength: 5,
    })
    .map((letters) => letters.join('')),
  fc.string({ unit: 'binary', maxLength: 12 }),
);

/** As Redis keeps an entry: the name's is written with its bytes. */
function nameEntry(ofName: string, ofId: number): string {
  const record = product(ofId, { product: { id: ofId, name: ofName }, barcodes: [] });
  const [entry = ''] = entriesOf(productCollection, { record, id: ofId, position: 1 });
  return Buffer.from(entry).toString('latin1');
}

describe('the entries of a search index', () => {
  it('has by its bytes the order of folded names in UTF-8, then of ids as numbers', () => {
    const named = fc.tuple(name, id);
    fc.assert(
      fc.property(named, named, ([oneName, oneId], [otherName, otherId]) => {
        const expected = compareText(fold(oneName), fold(otherName)) || Math.sign(oneId - otherId);
        const found = compareBytes(nameEntry(oneName, oneId), nameEntry(otherName, otherId));
        expect(found).to.equal(expected);
      }),
      { numRuns: 5_000 },
    );
  });

  it('has every id that there can be', () => {
    fc.assert(
      fc.property(name, id, (its, number) => {
        expect(idOf(nameEntry(its, number))).to.equal(String(number));
      }),
    );
    for (const number of [1, 63, 64, 4_095, 4_096, Number.MAX_SAFE_INTEGER])
      expect(idOf(nameEntry('a', number))).to.equal(String(number));
  });

  it('finds with a beginning exactly the names that begin so once they are folded', () => {
    const typed = fc.oneof(
      name.map((it) => [...it].slice(0, 3).join('')),
      fc.constantFrom('a', 'A ', 'ab', 'i', 'ł'),
    );
    fc.assert(
      fc.property(name, id, typed, (its, number, beginning) => {
        const entry = nameEntry(its, number);
        const prefix = prefixOf({ name: beginning });
        const isFound = entry >= bytes(prefix) && entry < bytes(beyond(prefix));
        const whole = fold(its).startsWith(fold(beginning));
        expect(isFound).to.equal(whole);
      }),
      { numRuns: 5_000 },
    );
  });

  it('has the whole name once, and beside each barcode as much of it as any search can ask for', () => {
    const name = `${'한'.repeat(9_998)}글`;
    const barcodes = ['012345678901', '0123456789012'].map((barcode) => ({ barcode, skrsStatus: null }));
    const record = product(5, { product: { id: 5, name }, barcodes });
    const entries = entriesOf(productCollection, { record, id: 5, position: 1 });
    expect(entries.filter((entry) => entry.includes(fold(name)))).to.have.length(1);
    for (const entry of entries.slice(1)) expect([...entry].length).to.be.below(1_050);
    const asked = prefixOf({ barcode: '012345678901', name: name.slice(0, 200) });
    expect(entries.filter((entry) => entry >= asked && entry < beyond(asked)).map(idOf)).to.deep.equal(['5']);
    const pairs = product(6, { product: { id: 6, name: '\u{20000}'.repeat(1_500) }, barcodes });
    for (const entry of entriesOf(productCollection, { record: pairs, id: 6, position: 1 }))
      expect(Buffer.from(entry).toString()).to.equal(entry);
  });

  it('has for each barcode the list’s order, and the order of names', () => {
    const barcodes = ['012345678901', '0123456789012'].map((barcode) => ({ barcode, skrsStatus: null }));
    const entries = [9, 10, 1_000].flatMap((position) =>
      entriesOf(productCollection, {
        record: product(5_000 - position, { barcodes }),
        id: 5_000 - position,
        position,
      }),
    );
    const found = (search: Parameters<typeof prefixOf>[0]) =>
      entries
        .filter((entry) => entry >= prefixOf(search) && entry < beyond(prefixOf(search)))
        .sort(compareBytes)
        .map(idOf);
    for (const { barcode } of barcodes) {
      expect(found({ barcode })).to.deep.equal(['4991', '4990', '4000']);
      expect(found({ barcode, name: 'drug' })).to.deep.equal(['4000', '4990', '4991']);
      expect(found({ barcode, name: 'Drug 499' })).to.deep.equal(['4990', '4991']);
    }
    expect(found({ barcode: '012345678902' })).to.deep.equal([]);
  });
});
