// Returns the barcode to search for from a scanner's text. GS1 General Specifications, sections 3 (element strings) and 7.9.

/** Elements of fixed length, which have no separator, by the start of their identifier. */
const fixedLengths: readonly (readonly [start: RegExp, length: number])[] = [
  [/^00/, 20],
  [/^0[1-3]/, 16],
  [/^04/, 18],
  [/^1[1-9]/, 8],
  [/^20/, 4],
  [/^3[1-6]/, 10],
  [/^41/, 16],
];

/** Visible texts that scanners write for the separator FNC1, besides the control character GS. */
const separators = /\u241d|[{<](?:GS|FNC1)[}>]|\^\]|\\x1d|~/gi;

/**
 * Returns the barcode to search for from a scanner's text: a GTIN of 8, 12, 13 or 14 digits; a GS1 element string as in a
 * Data Matrix, with or without separators and parentheses; or a GS1 Digital Link. Other elements, such as the serial number,
 * are dropped.
 * Check digits are not verified: real products have wrong ones. {@link hasCheckDigit} verifies them.
 * @returns 13 digits, or 12 if a 13th would be a leading zero; `null` if the text has no GTIN, or only the GTIN of a case or pallet,
 * which no product has
 * @example
 * console.log(gtinOf(']d2010869954601001121ABC12345\u001d1726123110LOT7')); // 8699546010011
 * console.log(gtinOf('https://id.gs1.org/01/08699546010011/21/ABC12345')); // 8699546010011
 * console.log(gtinOf('no barcode')); // null
 */
export function gtinOf(text: string): string | null {
  const scanned = text.trim().replace(/^\][a-z]\d/i, '');
  const [, linked] = /^https?:\/\/[^?#]*?\/(?:01|gtin)\/(\d{8}|\d{12,14})(?![^/?#])/i.exec(scanned) ?? [];
  return asBarcode(linked ?? (/^\d{1,14}$/.test(scanned) ? scanned : inElements(scanned)));
}

/**
 * Returns whether the last digit of a barcode is the check digit of the others.
 * @example
 * console.log(hasCheckDigit('8699546010012')); // false
 */
export function hasCheckDigit(barcode: string): boolean {
  if (!/^\d{8}$|^\d{12,14}$/.test(barcode)) return false;
  const sum = [...barcode].reverse().reduce((sum, digit, n) => sum + Number(digit) * (n % 2 ? 3 : 1), 0);
  return sum % 10 === 0;
}

/** Returns the GTIN of an element string. */
function inElements(text: string): string | undefined {
  const [, bracketed] = /\(01\) ?(\d{12,14})(?!\d)/.exec(text) ?? [];
  if (bracketed) return bracketed;
  let rest = text.replaceAll('\u001d', '|').replace(separators, '|');
  while (rest) {
    rest = rest.replace(/^\|+/, '');
    if (rest.startsWith('01')) return /^01(\d{14})/.exec(rest)?.[1];
    const fixed = fixedLengths.find(([start]) => start.test(rest))?.[1];
    const end = rest.indexOf('|');
    // Without a separator, the start of the next element is unknown.
    if (!/^\d\d/.test(rest) || (fixed === undefined && end < 0)) return undefined;
    rest = rest.slice(fixed ?? end);
  }
  return undefined;
}

/** Returns a GTIN in the form of medref. */
function asBarcode(gtin: string | undefined): string | null {
  if (gtin === undefined || !/^\d{8}$|^\d{12,14}$/.test(gtin)) return null;
  const digits = gtin.padStart(14, '0');
  if (!digits.startsWith('0')) return null;
  return digits.replace(/^00?/, '');
}
