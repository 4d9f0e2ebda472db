// Whether the time of a refusal tells how much of a key is right: keys that do not exist, against such that begin like a real
// one. Out: the times of both, and whether they differ by more than chance would have it.

import { randomInt } from 'node:crypto';
import { crc32 } from 'node:zlib';
import { ApiKeyring } from '../../api/reads/keyring.ts';
import { createApiKey } from '../../shared/api-keys.ts';
import { isKeyText, makeKeyText } from '../../shared/formats/api-key-text.ts';
import { connectForServing, connectForWriting } from '../../shared/redis/connections.ts';
import { startTestRedis } from '../support/redis-server.ts';
import { type Finding, inDigits } from './reliability-page.ts';

const samples = 100_000;

/** How many characters of the real key the other one begins with. */
const shared = 40;

/** A difference by so many standard errors is no chance: of a million runs, two or three would show it. */
const maxErrors = 4.7;

const text = `${inDigits(samples)} times each, by turns: a key that does not exist, and one that does not exist either, but begins with ${shared} of the 43
characters of a key that does. Both have a right check, and both are looked up by the keyring of an API process in a real Redis. Told are times of
a refusal, of the half that was quickest, since the slow ones are those of the machine. A difference of more than ${maxErrors}
standard errors would be one.`;

/** Times refusals. */
export async function proveKeyTiming(say: (progress: string) => void): Promise<Finding> {
  const server = await startTestRedis();
  const connection = await connectForWriting(server.url);
  const redis = connectForServing(server.url);
  try {
    await new Promise((resolve) => redis.once('ready', resolve));
    const { key } = await createApiKey(connection, 'medref', {
      client: 'proof',
      expiresAt: null,
      rate: null,
    });
    const keyring = new ApiKeyring({ redis, keyPrefix: 'medref', onDamage: () => undefined });
    await keyring.find(key, () => 'real');
    const [unlike, alike]: [number[], number[]] = [[], []];
    for (let n = 0; n < samples + 1_000; n += 1) {
      if (n % 20_000 === 0) say(`${inDigits(n)} of ${inDigits(samples)}`);
      // Each from an address of its own, so that none is past its limit.
      const time = async (sent: string) => {
        const from = process.hrtime.bigint();
        const found = await keyring.find(sent, () => String(n));
        if (found) throw new Error('A key was found that does not exist.');
        return Number(process.hrtime.bigint() - from) / 1_000;
      };
      const [one, other] = [asReceived(makeKeyText()), asReceived(likeThis(key))];
      const isOneFirst = randomInt(2) === 0;
      const first = await time(isOneFirst ? one : other);
      const second = await time(isOneFirst ? other : one);
      if (n < 1_000) continue; // Until the code is compiled.
      unlike.push(isOneFirst ? first : second);
      alike.push(isOneFirst ? second : first);
    }
    const [a, b] = [quickHalf(unlike), quickHalf(alike)];
    const errors = Math.abs(a.mean - b.mean) / Math.hypot(a.error, b.error);
    const rows = [
      ['a key that begins otherwise', a.mean.toFixed(3), a.median.toFixed(3)],
      [`one that begins with ${shared} characters of a real one`, b.mean.toFixed(3), b.median.toFixed(3)],
      ['difference', (b.mean - a.mean).toFixed(3), `${errors.toFixed(1)} standard errors`],
    ];
    const faults = errors > maxErrors ? [`The times differ by ${errors.toFixed(1)} standard errors.`] : [];
    return { text, tables: [{ head: ['Sent', 'Mean, µs', 'Median, µs'], rows }], faults };
  } finally {
    redis.disconnect();
    connection.disconnect();
    await server.stop();
  }
}

/** A text as it comes from a connection: what it was put together from, or looked at by, makes no difference. */
function asReceived(text: string): string {
  return Buffer.from(text, 'latin1').toString('latin1');
}

/** A key that does not exist, which begins like this one. */
function likeThis(key: string): string {
  const begin = key.slice('medref_'.length, 'medref_'.length + shared);
  const secret = begin + makeKeyText().slice(-(43 - shared));
  if (key.startsWith(`medref_${secret}`)) return likeThis(key); // Three characters are the same once in 238,328 times.
  const text = `medref_${secret}${inBase62(crc32(secret))}`;
  if (!isKeyText(text)) throw new Error('The check of a key is not right.');
  return text;
}

function inBase62(value: number): string {
  const digits = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz';
  let shown = '';
  for (let rest = value; shown.length < 6; rest = Math.floor(rest / 62)) shown = digits[rest % 62] + shown;
  return shown;
}

function quickHalf(times: readonly number[]): { mean: number; median: number; error: number } {
  const sorted = [...times].sort((x, y) => x - y);
  const quick = sorted.slice(0, sorted.length / 2);
  const mean = quick.reduce((sum, it) => sum + it, 0) / quick.length;
  const variance = quick.reduce((sum, it) => sum + (it - mean) ** 2, 0) / quick.length;
  return {
    mean,
    median: sorted[Math.floor(sorted.length / 2)] ?? 0,
    error: Math.sqrt(variance / quick.length),
  };
}
