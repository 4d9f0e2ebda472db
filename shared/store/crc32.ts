// CRC-32 of texts put together from the CRC-32 of each (RFC 1952, section 8; the method of zlib's crc32_combine).
// Polynomials over GF(2) modulo the CRC's own, reflected: the highest bit is x^0.

const polynomial = 0xedb88320 | 0;

/** x^0; all arithmetic is on 32-bit integers with a sign, the fastest numbers there are. */
const one = 0x80000000 | 0;

/** a · b */
function multiply(a: number, b: number): number {
  let product = 0;
  let power = b;
  for (let n = 0; n < 32; n += 1) {
    product ^= power & ((a << n) >> 31);
    power = (power >>> 1) ^ (polynomial & -(power & 1));
  }
  return product;
}

/** x^(8·2^n), by n. */
const powers: number[] = [multiply(0x08000000, 0x08000000)];
for (let n = 1; n < 32; n += 1) powers.push(multiply(powers[n - 1] as number, powers[n - 1] as number));

/** What moves a CRC past a text of this many bytes: x^(8·length). */
export function crcShift(length: number): number {
  let factor = one;
  for (let n = 0, left = length; left > 0; n += 1, left = Math.floor(left / 2)) {
    if (left % 2 === 1) factor = multiply(factor, powers[n] as number);
  }
  return factor;
}

/**
 * The CRC-32 of two texts, one after the other.
 * @param shift {@link crcShift} of the second one's length
 */
export function combineCrc32(first: number, second: number, shift: number): number {
  return (multiply(first, shift) ^ second) >>> 0;
}
