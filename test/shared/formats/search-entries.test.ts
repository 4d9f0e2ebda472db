import { expect } from 'chai';
import fc from 'fast-check';
import { products as productCollection } from '../../../shared/collections/products.ts';
import {
  bytes,
  type EntryRange,
  entriesAt,
  frequentEntriesOf,
  frequentOver,
  idOf,
  isListed,
  keyIn,
  keyOf,
  listedRange,
  namesRange,
  rankedRange,
  rankOf,
  unrankedEntryOf,
} from '../../../shared/formats/search-entries.ts';
import { fold } from '../../../shared/store/fold.ts';
import { codePoint } from '../../support/code-points.ts';
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
  fc.string({ unit: codePoint, maxLength: 12 }),
);

/** As Redis keeps an entry: the name's is written with its bytes. */
function nameEntry(ofName: string, ofId: number): string {
  const record = product(ofId, { product: { id: ofId, name: ofName } });
  const [entry = ''] = entriesAt(
    bytes(unrankedEntryOf(productCollection, { record, id: ofId, place: 1 })),
    7,
  );
  return entry;
}

const isIn = (entry: string, { least, beyond }: EntryRange) => entry >= least && entry < beyond;

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
        const isFound = isIn(entry, namesRange(beginning));
        const whole = fold(its).startsWith(fold(beginning));
        expect(isFound).to.equal(whole);
      }),
      { numRuns: 5_000 },
    );
  });

  const twoBarcodes = ['012345678901', '0123456789012'].map((barcode) => ({ barcode, skrsStatus: null }));

  it('has the name once, and each record by each of its barcodes and by its drug', () => {
    const name = `${'한'.repeat(9_998)}글`;
    const record = product(5, { product: { id: 5, name }, barcodes: twoBarcodes });
    const [first, ...others] = entriesAt(unrankedEntryOf(productCollection, { record, id: 5, place: 0 }), 9);
    expect(isIn(bytes(first as string), namesRange(name.slice(0, 200)))).to.equal(true);
    expect(others.map(keyIn)).to.have.members([
      keyOf({ drug: 5 }),
      ...twoBarcodes.map(({ barcode }) => keyOf({ barcode })),
    ]);
    for (const entry of others) expect([idOf(entry), entry.length < 50]).to.deep.equal(['5', true]);
    expect(keyIn(first as string)).to.equal(null);
  });

  it('has by each key the list’s order, and tells which records have a drug and a rank, too', () => {
    // The later in the list, the less the id and the greater the rank, which pass from one digit to two.
    const places = [0, 1, 62, 63, 64, 4_095, 4_096];
    const entries = places.flatMap((place) => {
      const record = product(5_000 - place, {
        barcodes: twoBarcodes,
        drug: { id: 1 + (place % 2), name: 'x' },
      });
      const unranked = unrankedEntryOf(productCollection, { record, id: 5_000 - place, place });
      return entriesAt(bytes(unranked), place + 7).slice(1);
    });
    const found = (key: string | null) =>
      entries.filter((entry) => isIn(entry, listedRange(key as string))).sort(compareBytes);
    const idsAt = (at: readonly number[]) => at.map((place) => String(5_000 - place));
    for (const { barcode } of twoBarcodes) {
      const its = found(keyOf({ barcode }));
      expect(its.map(idOf)).to.deep.equal(idsAt(places));
      const chosen = (conditions: Parameters<typeof isListed>[1]) =>
        its.filter((entry) => isListed(entry, conditions)).map(idOf);
      expect(chosen({ drug: 2 })).to.deep.equal(idsAt([1, 63, 4_095]));
      expect(chosen({ ranks: { from: 8, until: 71 } })).to.deep.equal(idsAt([1, 62, 63]));
      expect(chosen({ drug: 1, ranks: { from: 0, until: 71 } })).to.deep.equal(idsAt([0, 62]));
      expect(its.map(rankOf)).to.deep.equal(its.map(rankOf).sort());
    }
    expect(found(keyOf({ drug: 2 })).map(idOf)).to.deep.equal(idsAt([1, 63, 4_095]));
    expect(found(keyOf({ drug: 3 }))).to.deep.equal([]);
    expect(found(keyOf({ barcode: '012345678902' }))).to.deep.equal([]);
  });

  it('has of a frequent key the order of names, and each drug of a barcode', () => {
    const record = product(9, { barcodes: twoBarcodes, drug: { id: 70, name: 'x' } });
    const unranked = unrankedEntryOf(productCollection, { record, id: 9, place: 3 });
    const [, ofDrug = '', ofBarcode = ''] = entriesAt(unranked, 64);
    const { barcode } = twoBarcodes[0] as { barcode: string };
    const keys = (entry: string, range: EntryRange) => [idOf(entry), isIn(entry, range)];
    const at = { from: 64, until: 65 };
    expect(
      frequentEntriesOf(ofDrug).map((it) => keys(it, rankedRange(keyOf({ drug: 70 }) as string, at))),
    ).to.deep.equal([['9', true]]);
    const both = keyOf({ barcode, drug: 70 }) as string;
    const [byName = '', listed = '', named = ''] = frequentEntriesOf(ofBarcode);
    expect(keys(byName, rankedRange(keyOf({ barcode }) as string, at))).to.deep.equal(['9', true]);
    expect(keys(listed, listedRange(both))).to.deep.equal(['9', true]);
    expect(keys(named, rankedRange(both, at))).to.deep.equal(['9', true]);
    for (const ranks of [
      { from: 0, until: 64 },
      { from: 65, until: 4_096 },
    ])
      expect(isIn(named, rankedRange(both, ranks))).to.equal(false);
    // All of them come behind those that they are made of.
    for (const entry of [byName, listed, named]) expect(entry > ofDrug && entry > ofBarcode).to.equal(true);
    expect([byName, listed, named].map(keyIn)).to.deep.equal([null, null, null]);
    expect(frequentOver).to.equal(200);
  });
});
