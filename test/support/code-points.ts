// Arbitrary Unicode characters for property tests of text.

import fc from 'fast-check';

const surrogates = 0x800;

/**
 * Generates text of one code point, without surrogates, as a `unit` of `fc.string`. The `binary` unit of fast-check has the
 * same characters, but needs a second of CPU time and a map of all of them.
 */
export const codePoint = fc
  .integer({ min: 0, max: 0x10ffff - surrogates })
  .map((n) => String.fromCodePoint(n < 0xd800 ? n : n + surrogates));
