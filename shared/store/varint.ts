// Whole numbers in seven bits a byte, the lowest first; the last byte of each has its highest bit clear.

/** A number as bytes, one character each. */
export function varint(value: number): string {
  if (value < 0x80) return String.fromCharCode(value);
  return String.fromCharCode((value % 0x80) + 0x80) + varint(Math.floor(value / 0x80));
}

/** Reads numbers from bytes, one after the other. */
export class VarintReader {
  readonly #bytes: Buffer;
  /** Where the next number begins. */
  at: number;

  constructor(bytes: Buffer, at: number) {
    this.#bytes = bytes;
    this.at = at;
  }

  /** The next number; bytes that end within one count as zeros. */
  next(): number {
    let value = 0;
    for (let scale = 1; ; scale *= 0x80) {
      const byte = this.#bytes[this.at++] ?? 0;
      value += (byte & 0x7f) * scale;
      if (byte < 0x80) return value;
    }
  }
}
