// In: a count. Out: a file with that many invented products as one JSON array, and how many bytes it has.

import { createWriteStream } from 'node:fs';
import { rm, stat } from 'node:fs/promises';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { sampleProducts } from '../demo/sample-catalogue.ts';
import type { Product } from '../shared/collections/products.ts';
import type { Workspace } from './workspace.ts';

/** A list in a file. */
export interface ListFile {
  readonly path: string;
  readonly count: number;
  readonly bytes: number;
  remove(): Promise<void>;
}

const seed = 868_869;
const pieceLength = 65_536;

/** The invented products of the bench; a shorter list is the beginning of a longer one, unless the seed differs. */
export function generatedProducts(count: number, variant = 0): Iterable<Product> {
  return sampleProducts({ seed: seed + variant, count });
}

/** Writes a generated list; it goes with the workspace if it is not removed before. */
export function writeGeneratedList(workspace: Workspace, count: number, variant = 0): Promise<ListFile> {
  return writeList(workspace, generatedProducts(count, variant), count);
}

/** Writes records as such a list. */
export async function writeList(
  workspace: Workspace,
  products: Iterable<Product>,
  count: number,
): Promise<ListFile> {
  const path = workspace.path(`${count}-products.json`);
  await pipeline(Readable.from(arrayText(products)), createWriteStream(path));
  const { size: bytes } = await stat(path);
  return { path, count, bytes, remove: () => rm(path, { force: true }) };
}

/** Writes records to a file, one a line. */
export async function writeLines(path: string, products: Iterable<Product>): Promise<void> {
  await pipeline(Readable.from(lines(products)), createWriteStream(path));
}

function* lines(records: Iterable<unknown>): Generator<string, void, undefined> {
  let piece = '';
  for (const record of records) {
    piece += `${JSON.stringify(record)}\n`;
    if (piece.length < pieceLength) continue;
    yield piece;
    piece = '';
  }
  yield piece;
}

/** Stream-json's readers of arrays take an array at the top, as the importer does. */
function* arrayText(records: Iterable<unknown>): Generator<string, void, undefined> {
  let piece = '[';
  let separator = '';
  for (const record of records) {
    piece += separator + JSON.stringify(record);
    separator = ',';
    if (piece.length < pieceLength) continue;
    yield piece;
    piece = '';
  }
  yield `${piece}]`;
}
