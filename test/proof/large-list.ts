// In: how many products. Out: generations of a list of that many, written to files and known record by record.
// The texts lie in one buffer, so that a million of them cost no garbage collection while readers are timed.

import { createWriteStream } from 'node:fs';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { sampleProducts } from '../../demo/sample-catalogue.ts';
import type { Product } from '../../shared/collections/product.ts';

/** A list too large to be kept as values. */
export interface LargeList {
  readonly size: number;
  /** JSON texts of records in list order; at most as many as there are. */
  texts(generation: number, from: number, count: number): string[];
  /** Writes a generation as a document of upstream. */
  write(generation: number, path: string): Promise<void>;
}

/** Each generation lacks one record of so many, has one of so many changed, and ends with records of its own. */
const strides = { removed: 1_000, changed: 400 };
const seed = 20_250_101;
const roomPerRecord = 800;
const piece = 1_000;

/** Makes a list of so many records that has generations from 1 to so many. */
export function largeList(size: number, generations: number): LargeList {
  const share = Math.floor(size / strides.removed);
  const texts = storedTexts(size + share * (generations + 1));
  const orders = Array.from({ length: generations + 1 }, (_, generation) => orderOf(size, share, generation));
  const textOf = (generation: number, index: number): string => {
    const text = texts(index);
    return index % strides.changed === generation ? marked(text, generation) : text;
  };
  const list: LargeList = {
    size,
    texts: (generation, from, count) =>
      Array.from((orders[generation] as Uint32Array).subarray(from, from + count), (index) =>
        textOf(generation, index),
      ),
    write: (generation, path) =>
      pipeline(Readable.from(documentPieces(list, generation)), createWriteStream(path)),
  };
  return list;
}

/** Which records a generation has, in order: those of all but its share, then its own. */
function orderOf(size: number, share: number, generation: number): Uint32Array {
  const order = new Uint32Array(size);
  let length = 0;
  for (let index = 0; index < size; index++) {
    if (index % strides.removed !== generation) order[length++] = index;
  }
  for (let own = size + generation * share; length < size; own++) order[length++] = own;
  return order;
}

function marked(text: string, generation: number): string {
  const record = JSON.parse(text) as Product;
  return JSON.stringify({
    ...record,
    drugform: { ...record.drugform, name: `${record.drugform.name} G${generation}` },
  });
}

/** The texts of so many sample products, by index. */
function storedTexts(count: number): (index: number) => string {
  const bytes = Buffer.allocUnsafeSlow(count * roomPerRecord);
  const ends = new Float64Array(count + 1);
  let index = 0;
  for (const record of sampleProducts({ seed, count })) {
    const end = ends[index] as number;
    index += 1;
    ends[index] = end + bytes.write(JSON.stringify(record), end);
  }
  return (at) => bytes.toString('utf8', ends[at], ends[at + 1]);
}

function* documentPieces(list: LargeList, generation: number): Generator<string, void> {
  let before = '{"data":[';
  for (let from = 0; from < list.size; from += piece) {
    yield `${before}${list.texts(generation, from, piece).join(',')}`;
    before = ',';
  }
  yield ']}';
}
