// Any character of Unicode, for properties of text.

import fc from 'fast-check';

const surrogates = 0x800;

/**
 * Text of one code point that is no half of a pair, as a `unit` of `fc.string`. That of fast-check, `binary`, has the same,
 * but takes a second of CPU and a map of all of them to be made.
 */
export const codePoint = fc
  .integer({ min: 0, max: 0x10ffff - surrogates })
  .map((n) => String.fromCodePoint(n < 0xd800 ? n : n + surrogates));
