import { randomBytes } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { crc32 } from 'node:zlib';
import { expect } from 'chai';
import { makeKeyText } from '../../../shared/store/api-keys.ts';

const digits = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz';

describe('the text of an API key', () => {
  const keys = Array.from({ length: 200 }, makeKeyText);

  it('is medref_, 43 random characters of base 62, and their CRC-32 in 6', () => {
    expect(new Set(keys).size).to.equal(keys.length);
    for (const key of keys) {
      const [, secret = '', check = ''] = /^medref_([0-9A-Za-z]{43})([0-9A-Za-z]{6})$/.exec(key) ?? [];
      const number = [...check].reduce((sum, digit) => sum * 62 + digits.indexOf(digit), 0);
      expect(number, key).to.equal(crc32(secret));
    }
  });

  it('uses each character of base 62 equally often', () => {
    const counts = new Map<string, number>();
    const drawn = keys.flatMap((key) => [...key.slice(7, 50)]);
    for (const character of drawn) counts.set(character, (counts.get(character) ?? 0) + 1);
    const usual = drawn.length / 62;
    expect(counts.size).to.equal(62);
    for (const count of counts.values()) expect(count).to.be.within(usual / 2, usual * 2);
  });

  it('matches the scanner rule of docs/SECURITY.md in each release, and nothing else matches', () => {
    const page = readFileSync(new URL('../../../docs/SECURITY.md', import.meta.url), 'utf8');
    const [, regex = ''] = /regex = '''(.+)'''/.exec(page) ?? [];
    const keywords = /keywords = \["(.+)"\]/.exec(page)?.[1] ?? '';
    const older = `medref_${randomBytes(32).toString('base64url')}`;
    for (const key of [...keys, older]) {
      for (const text of [key, `MEDREF_KEY=${key}`, `"Bearer ${key}"`, `key: ${key}\n`])
        expect(new RegExp(regex).exec(text)?.[1], text).to.equal(key);
      expect(key).to.include(keywords);
    }
    for (const text of [`medref_${'a'.repeat(30)}`, 'medref_http_client_requests_total', `${keys[0]}x`])
      expect(new RegExp(regex).test(text), text).to.equal(false);
  });
});
