// How a content is stored, by the number that its version's document has: the format that is written, and those before
// it, which are still read.

import { type Block, openBlock } from '../store/block.ts';
import { checkLength, isIntact } from './checked-bytes.ts';
import { openEntries } from './search-page.ts';

/** Opens what is stored of a content; each gives `null` for what is not as it was stored. */
export interface ContentFormat {
  /** How many bytes stand behind each record and each range of ids. */
  readonly checkLength: number;
  /** A record's JSON text. @param id decimal digits */
  openRecord(stored: Buffer, id: string): Buffer | null;
  /** The ids of a range, packed. */
  openRange(stored: Buffer, number: number): Buffer | null;
  openBlock(stored: Buffer, number: number): Block | null;
  /** The entries of a page of the search index. */
  openPage(stored: Buffer, number: number): string[] | null;
  /** Whether the search index has drugs and ranks, see search-entries.ts; else it has each barcode with each name. */
  readonly hasRanks: boolean;
}

/** A content of a format that only a newer release knows. */
export class UnknownFormatError extends Error {}

/** The format of what is written now. */
export const currentFormat = 3;

/** Records and ranges without checks; those of blocks and pages do not say where they belong. */
const first: ContentFormat = {
  checkLength: 0,
  openRecord: (stored) => stored,
  openRange: (stored) => stored,
  openBlock: (stored) => openBlock(stored, 0),
  openPage: (stored) => openEntries(stored, 0),
  hasRanks: false,
};

const second: ContentFormat = {
  checkLength,
  openRecord: (stored, id) => uncovered(stored, Number(id)),
  openRange: uncovered,
  openBlock,
  openPage: openEntries,
  hasRanks: false,
};

const third: ContentFormat = { ...second, hasRanks: true };

const formats: readonly ContentFormat[] = [first, second, third];

/** How a content is stored. @throws UnknownFormatError */
export function formatOf({ format }: { readonly format: number }): ContentFormat {
  const known = formats[format - 1];
  if (known) return known;
  throw new UnknownFormatError(
    `It is stored in the format ${format}, which only a newer release of medref reads; run that one.`,
  );
}

function uncovered(stored: Buffer, place: number): Buffer | null {
  return isIntact(stored, place) ? stored.subarray(0, stored.length - checkLength) : null;
}
