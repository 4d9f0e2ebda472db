// Keys and their rates, tried by who would learn or take more than is his. Out: what both proofs of it found, as one.

import { proveKeyTiming } from './key-timing.ts';
import { proveRates } from './rates.ts';
import type { Finding } from './reliability-page.ts';

/** Proves one after the other. */
export async function proveKeySecurity(say: (progress: string) => void): Promise<Finding> {
  const findings = [await proveRates(say), await proveKeyTiming(say)];
  return {
    text: findings.map(({ text }) => text).join('\n\n'),
    tables: findings.flatMap(({ tables }) => tables),
    faults: findings.flatMap(({ faults }) => faults),
  };
}
