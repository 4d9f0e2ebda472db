// The digests of a version as header fields, by which a client proves that its copy is the version.

import type { Version } from '../../shared/store/versions.ts';

/** Both digests of a version, in base64; `null` where one is not known, of a version that an older release published. */
export interface Digests {
  /** SHA-256 of its lines. */
  readonly list: string;
  /** Sum of the SHA-256 of each record, modulo 2^256. */
  readonly set: string | null;
}

export function digestsOf({ checksum, setDigest }: Version): Digests {
  return { list: base64(checksum), set: setDigest === undefined ? null : base64(setDigest) };
}

function base64(hexadecimal: string): string {
  return Buffer.from(hexadecimal, 'hex').toString('base64');
}

/** `Medref-Digest`, written as RFC 9530 writes digests. */
export function digestFields(version: Version): string[] {
  const { list, set } = digestsOf(version);
  return ['medref-digest', `list=:${list}:${set === null ? '' : `, set=:${set}:`}`];
}
