// Makes the text of an API key, which scanners for secrets can recognise.

import { randomInt } from 'node:crypto';
import { crc32 } from 'node:zlib';

const digits = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz';

/** 62^43 is more than 2^256. */
const secretLength = 43;

/** 62^6 is more than 2^32. */
const checkLength = 6;

/** Makes a key: `medref_`, 43 random characters, and their CRC-32 in 6 characters. */
export function makeKeyText(): string {
  const secret = Array.from({ length: secretLength }, () => digits[randomInt(digits.length)]).join('');
  return `medref_${secret}${checkOf(secret)}`;
}

/** Returns the CRC-32 of a text in base 62. */
function checkOf(secret: string): string {
  let check = '';
  for (let rest = crc32(secret); check.length < checkLength; rest = Math.floor(rest / digits.length))
    check = digits[rest % digits.length] + check;
  return check;
}
