// Digests of records and lists, with an incremental SHA-256, which Web Crypto lacks.

/** The digests of a version, in base64, as in `Medref-Digest`. */
export interface Digest {
  /** SHA-256 of the list as NDJSON. */
  readonly list: string;
  /** Sum of the SHA-256 of the records, in any order; `null` if the service sent none. */
  readonly set: string | null;
}

/** The digests of records. */
export interface RecordsDigest extends Digest {
  /** Sum of the SHA-256 of the records, in any order. */
  readonly set: string;
}

const encoder = new TextEncoder();

/**
 * Returns the digests of records.
 * @param records unchanged, with their members in the original order
 * @example
 * const { set } = digestOf([{ drug: { id: 3, name: 'NÖGEMRÜN' } }]);
 * console.log(set); // /vSANT/EU5dV97RFs3QjnNP1cWJwdFTw6Coa4J1NXdk=
 */
export function digestOf(records: Iterable<object>): RecordsDigest {
  const list = startSha256();
  const set = new SetDigest();
  for (const record of records) {
    list.update(encoder.encode(`${JSON.stringify(record)}\n`));
    set.add(record);
  }
  return { list: base64(list.digest()), set: set.value };
}

/**
 * The digest of a changing set of records. It equals `digest.set` of a version if the set equals the version.
 * @example
 * const digest = new SetDigest();
 * digest.add({ drug: { id: 3, name: 'NÖGEMRÜN' } });
 * digest.remove({ drug: { id: 3, name: 'NÖGEMRÜN' } });
 * console.log(digest.value === new SetDigest().value); // true
 */
export class SetDigest {
  #sum = 0n;

  /** Adds a record. */
  add(record: object): void {
    this.addNumber(numberOf(JSON.stringify(record)));
  }

  /** Removes a record, which must be unchanged since it was added. */
  remove(record: object): void {
    this.addNumber(-numberOf(JSON.stringify(record)));
  }

  /** @internal Adds a record's {@link numberOf}; a negative number removes it. */
  addNumber(number: bigint): void {
    this.#sum = BigInt.asUintN(256, this.#sum + number);
  }

  /** The digest in base64, as in `Medref-Digest`. */
  get value(): string {
    const hex = this.#sum.toString(16).padStart(64, '0');
    return base64(
      Uint8Array.from({ length: 32 }, (_, n) => Number.parseInt(hex.slice(2 * n, 2 * n + 2), 16)),
    );
  }
}

/** Returns the SHA-256 of a text as a big-endian number. */
export function numberOf(text: string): bigint {
  let hex = '0x';
  for (const byte of startSha256().update(encoder.encode(text)).digest())
    hex += byte.toString(16).padStart(2, '0');
  return BigInt(hex);
}

/** Returns bytes in base64. */
export function base64(bytes: Uint8Array): string {
  return btoa(String.fromCharCode(...bytes));
}

/** Parses `Medref-Digest`; `undefined` if it is absent or malformed. */
export function parseDigest(field: string | null): Digest | undefined {
  const [, list, set = null] = /^list=:([^:]+):(?:, *set=:([^:]+):)?/.exec(field ?? '') ?? [];
  return list === undefined ? undefined : { list, set };
}

/** A digest in progress. */
export interface Sha256 {
  /** Adds bytes. */
  update(bytes: Uint8Array): Sha256;
  /** Returns the 32 bytes; nothing can be added afterwards. */
  digest(): Uint8Array;
}

/** The parts of Node that may be present. */
interface NodeLike {
  getBuiltinModule?(name: 'node:crypto'): { createHash(name: 'sha256'): Sha256 } | undefined;
}

const node = (globalThis as { process?: NodeLike }).process?.getBuiltinModule?.('node:crypto');

/** Starts a digest. */
export function startSha256(): Sha256 {
  return node ? node.createHash('sha256') : new PortableSha256();
}

/** The first 32 bits of the fractions of roots of the first primes: square roots for the start, cube roots for the rounds. */
const [beginning, constants] = rootsOfPrimes();

function rootsOfPrimes(): [square: Int32Array, cube: Int32Array] {
  const primes: number[] = [];
  for (let n = 2; primes.length < 64; n += 1) if (primes.every((prime) => n % prime)) primes.push(n);
  const fraction = (root: number) => (root % 1) * 2 ** 32;
  return [
    Int32Array.from(primes.slice(0, 8), (prime) => fraction(prime ** 0.5)),
    Int32Array.from(primes, (prime) => fraction(Math.cbrt(prime))),
  ];
}

/** For browsers, and for Node without `process.getBuiltinModule`. */
export class PortableSha256 implements Sha256 {
  readonly #state = beginning.slice();
  readonly #words = new Int32Array(64);
  /** The bytes of an incomplete block. */
  readonly #block = new Uint8Array(64);
  #length = 0;

  /** Adds bytes. */
  update(bytes: Uint8Array): this {
    let used = this.#length % 64;
    this.#length += bytes.length;
    for (let at = 0; at < bytes.length; ) {
      const part = bytes.subarray(at, at + 64 - used);
      this.#block.set(part, used);
      at += part.length;
      used += part.length;
      if (used < 64) return this;
      this.#mix();
      used = 0;
    }
    return this;
  }

  /** Returns the 32 bytes. */
  digest(): Uint8Array {
    const length = this.#length;
    const end = new Uint8Array(8 + ((119 - (length % 64)) % 64) + 1);
    end[0] = 0x80;
    const view = new DataView(end.buffer);
    view.setUint32(end.length - 8, length / 2 ** 29);
    view.setUint32(end.length - 4, length << 3);
    this.update(end);
    const digest = new DataView(new ArrayBuffer(32));
    this.#state.forEach((word, n) => {
      digest.setInt32(n * 4, word);
    });
    return new Uint8Array(digest.buffer);
  }

  #mix(): void {
    const w = this.#words;
    const view = new DataView(this.#block.buffer);
    for (let n = 0; n < 16; n += 1) w[n] = view.getInt32(n * 4);
    for (let n = 16; n < 64; n += 1) {
      const [x, y] = [w[n - 15] as number, w[n - 2] as number];
      const s0 = turned(x, 7) ^ turned(x, 18) ^ (x >>> 3);
      const s1 = turned(y, 17) ^ turned(y, 19) ^ (y >>> 10);
      w[n] = (w[n - 16] as number) + s0 + (w[n - 7] as number) + s1;
    }
    let [a, b, c, d, e, f, g, h] = this.#state as unknown as EightWords;
    for (let n = 0; n < 64; n += 1) {
      const s1 = turned(e, 6) ^ turned(e, 11) ^ turned(e, 25);
      const t1 = (h + s1 + ((e & f) ^ (~e & g)) + (constants[n] as number) + (w[n] as number)) | 0;
      const t2 = (turned(a, 2) ^ turned(a, 13) ^ turned(a, 22)) + ((a & b) ^ (a & c) ^ (b & c));
      h = g;
      g = f;
      f = e;
      e = (d + t1) | 0;
      d = c;
      c = b;
      b = a;
      a = (t1 + t2) | 0;
    }
    [a, b, c, d, e, f, g, h].forEach((word, n) => {
      this.#state[n] = (this.#state[n] as number) + word;
    });
  }
}

type EightWords = [number, number, number, number, number, number, number, number];

/** Rotates a word to the right. */
function turned(word: number, by: number): number {
  return (word >>> by) | (word << (32 - by));
}
