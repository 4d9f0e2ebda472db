// The text of an API key: what it is made of, and whether a text can be one at all, which is known without asking Redis.

import { randomInt } from 'node:crypto';
import { crc32 } from 'node:zlib';

const digits = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz';

/** 62^43 is more than 2^256. */
const secretLength = 43;

/** 62^6 is more than 2^32. */
const checkLength = 6;

const checked = new RegExp(`^medref_([0-9A-Za-z]{${secretLength}})([0-9A-Za-z]{${checkLength}})$`);

/** Keys of the first release: 256 bits in base64url, without a check. */
const unchecked = /^medref_[\w-]{43}$/;

/** Makes a key: `medref_`, 43 random characters, and 6 that check them. */
export function makeKeyText(): string {
  const secret = Array.from({ length: secretLength }, () => digits[randomInt(digits.length)]).join('');
  return `medref_${secret}${checkOf(secret)}`;
}

/** Whether a text has the form of a key, and its check is right; most that were mistyped do not. */
export function isKeyText(text: string): boolean {
  const [, secret, check] = checked.exec(text) ?? [];
  return secret === undefined ? unchecked.test(text) : checkOf(secret) === check;
}

/** The CRC-32 of a text in base 62. */
function checkOf(secret: string): string {
  let check = '';
  for (let rest = crc32(secret); check.length < checkLength; rest = Math.floor(rest / digits.length))
    check = digits[rest % digits.length] + check;
  return check;
}
