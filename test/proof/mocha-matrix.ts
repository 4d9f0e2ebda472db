// In: test files whose titles say a fault and, after a colon, the expected outcome. Out: these as the rows of a table.

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { Finding } from './reliability-page.ts';

const root = fileURLToPath(new URL('../..', import.meta.url));
const mocha = join(root, 'node_modules/mocha/bin/mocha.js');

/** A test that was run. */
interface TestResult {
  /** Without the titles of its suites. */
  readonly title: string;
  /** What failed; empty for a test that held. */
  readonly err: { readonly message?: string };
}

/** Runs test files, and gives the faults that they inflict with what came of each. */
export async function proveByTests(
  text: string,
  head: readonly [fault: string, expected: string],
  files: readonly string[],
): Promise<Finding> {
  const { tests, pending } = await runTests(files);
  const left = new Set(pending.map(({ title }) => title));
  const held = ({ title, err }: TestResult) => {
    if (left.has(title)) return 'left out';
    return Object.keys(err).length === 0 ? 'yes' : 'no';
  };
  const matrix = tests.filter(({ title }) => title.includes(': '));
  const failed = tests.filter((test) => held(test) !== 'yes');
  return {
    text,
    tables: [
      { head: [...head, 'Held'], rows: matrix.map((test) => [...faultAndOutcome(test.title), held(test)]) },
    ],
    faults: [
      ...failed.map(({ title, err }) => `${title}: ${err.message?.split('\n')[0] ?? 'it was left out'}`),
      ...(matrix.length === 0 ? ['No test was run.'] : []),
    ],
  };
}

function faultAndOutcome(title: string): [string, string] {
  const colon = title.indexOf(': ');
  return [title.slice(0, colon), title.slice(colon + 2)];
}

async function runTests(
  files: readonly string[],
): Promise<{ tests: readonly TestResult[]; pending: readonly TestResult[] }> {
  const folder = await mkdtemp(join(tmpdir(), 'medref-proof-'));
  try {
    const output = join(folder, 'results.json');
    const options = ['--reporter', 'json', '--reporter-option', `output=${output}`];
    const child = spawn(process.execPath, [mocha, ...options, ...files], {
      cwd: root,
      env: { ...process.env, PROOF: 'whole' },
      stdio: ['ignore', 2, 2],
    });
    await once(child, 'close');
    return JSON.parse(await readFile(output, 'utf8'));
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}
