// What clients may do who would have more than is theirs: requests of any kind, a crowd, a key beyond its rate, guesses. Out: what the
// proofs of it found, as one.

import { proveCrowd } from './crowd.ts';
import { proveGeneratedTraffic } from './generated-traffic.ts';
import { proveKeyTiming } from './key-timing.ts';
import { proveRates } from './rates.ts';
import type { Finding } from './reliability-page.ts';

/** Proves one after the other. @param seed of the requests that are made up */
export async function proveSecurity(seed: number, say: (progress: string) => void): Promise<Finding> {
  const findings = [
    await proveGeneratedTraffic(seed, say),
    await proveCrowd(say),
    await proveRates(say),
    await proveKeyTiming(say),
  ];
  return {
    text: findings.map(({ text }) => text).join('\n\n'),
    tables: findings.flatMap(({ tables }) => tables),
    faults: findings.flatMap(({ faults }) => faults),
  };
}
