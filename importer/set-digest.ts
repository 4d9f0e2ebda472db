// In: the SHA-256 of each record of a list, in any order. Out: their sum, which tells whether two lists have the same records.

/** A SHA-256 as this many numbers of 32 bits. */
const limbs = 8;
const limbBytes = 4;
const base = 2 ** 32;

/** How many digests are added before what is carried over is: sums stay below 2^53. */
const carryAfter = 2 ** 20;

/** Adds SHA-256 digests, modulo 2^256. */
export class SetDigest {
  /** The lowest last, as in a digest. */
  readonly #sums = new Float64Array(limbs);
  #added = 0;

  /** @param digest 32 bytes, the highest first */
  add(digest: Buffer): void {
    for (let n = 0; n < limbs; n += 1)
      this.#sums[n] = (this.#sums[n] as number) + digest.readUInt32BE(n * limbBytes);
    this.#added += 1;
    if (this.#added % carryAfter === 0) this.#carry();
  }

  /** The sum, hexadecimal, the highest digits first. */
  hex(): string {
    this.#carry();
    const bytes = Buffer.alloc(limbs * limbBytes);
    for (let n = 0; n < limbs; n += 1) bytes.writeUInt32BE(this.#sums[n] as number, n * limbBytes);
    return bytes.toString('hex');
  }

  #carry(): void {
    let carried = 0;
    for (let n = limbs - 1; n >= 0; n -= 1) {
      const sum = (this.#sums[n] as number) + carried;
      this.#sums[n] = sum % base;
      carried = Math.floor(sum / base);
    }
  }
}
