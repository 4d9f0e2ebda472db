// By which a copy is proven: the digest of a list in its order, and of a set of records in any order.

import type { AnyRecord } from './records.ts';
import { startSha256 } from './sha256.ts';

/** The digests of a version, in base64, as in `Medref-Digest`. */
export interface Digest {
  /** SHA-256 of the list as lines, in its order. */
  readonly list: string;
  /** Sum of the SHA-256 of the records, in any order; `null` of a version of a release that had none. */
  readonly set: string | null;
}

const encoder = new TextEncoder();

/**
 * The digests of records.
 * @param records as they came, with their members in the order in which they came
 * @example
 * const { set } = digestOf([{ drug: { id: 3, name: 'NÖGEMRÜN' } }]);
 * console.log(set); // /vSANT/EU5dV97RFs3QjnNP1cWJwdFTw6Coa4J1NXdk=
 */
export function digestOf(records: Iterable<AnyRecord>): { readonly list: string; readonly set: string } {
  const list = startSha256();
  const set = new SetDigest();
  for (const record of records) {
    list.update(encoder.encode(`${JSON.stringify(record)}\n`));
    set.add(record);
  }
  return { list: base64(list.digest()), set: set.value };
}

/**
 * The digest of a set of records that changes: equal to `digest.set` of a version when the set is this version.
 * @example
 * const digest = new SetDigest();
 * digest.add({ drug: { id: 3, name: 'NÖGEMRÜN' } });
 * digest.remove({ drug: { id: 3, name: 'NÖGEMRÜN' } });
 * console.log(digest.value === new SetDigest().value); // true
 */
export class SetDigest {
  #sum = 0n;

  /** A record has come. */
  add(record: AnyRecord): void {
    this.addNumber(numberOf(JSON.stringify(record)));
  }

  /** A record has gone: as it was when it came. */
  remove(record: AnyRecord): void {
    this.addNumber(-numberOf(JSON.stringify(record)));
  }

  /** @internal A record's {@link numberOf}; negative where the record has gone. */
  addNumber(number: bigint): void {
    this.#sum = BigInt.asUintN(256, this.#sum + number);
  }

  /** In base64, as in `Medref-Digest`. */
  get value(): string {
    const hex = this.#sum.toString(16).padStart(64, '0');
    return base64(
      Uint8Array.from({ length: 32 }, (_, n) => Number.parseInt(hex.slice(2 * n, 2 * n + 2), 16)),
    );
  }
}

/** The SHA-256 of a text as a number, the highest byte first. */
export function numberOf(text: string): bigint {
  let hex = '0x';
  for (const byte of startSha256().update(encoder.encode(text)).digest())
    hex += byte.toString(16).padStart(2, '0');
  return BigInt(hex);
}

/** Bytes in base64. */
export function base64(bytes: Uint8Array): string {
  return btoa(String.fromCharCode(...bytes));
}

/** What a header field `Medref-Digest` says; `undefined` where it says nothing that can be read. */
export function parseDigest(field: string | null): Digest | undefined {
  const [, list, set = null] = /^list=:([^:]+):(?:, *set=:([^:]+):)?/.exec(field ?? '') ?? [];
  return list === undefined ? undefined : { list, set };
}
