// Lists of invented products in files, of any length.

import { createWriteStream } from 'node:fs';
import { rm, stat } from 'node:fs/promises';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { sampleProducts } from '../demo/sample-catalogue.ts';
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

/** Writes a list as one JSON array. @param variant lists of different variants share no record */
export async function writeGeneratedList(
  workspace: Workspace,
  count: number,
  variant = 0,
): Promise<ListFile> {
  const path = workspace.path(`${count}-products.json`);
  const products = sampleProducts({ seed: seed + variant, count });
  await pipeline(Readable.from(arrayText(products)), createWriteStream(path));
  const { size: bytes } = await stat(path);
  return { path, count, bytes, remove: () => rm(path, { force: true }) };
}

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
