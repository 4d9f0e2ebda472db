// In: an example of a page. Out: what it printed, run as a reader runs it: in a folder, with the two variables of the page.

import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { writeFile } from 'node:fs/promises';
import { delimiter, dirname, join } from 'node:path';
import type { Example } from './page-examples.ts';

/** The service that an example asks. */
export interface AskedService {
  readonly origin: string;
  readonly key: string;
}

export interface ExampleResult {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

/** An example that takes longer than this is ended, in ms. */
const patienceMs = 30_000;

/** How a file of each language is run. */
const runs = {
  sh: { program: 'sh', ending: 'sh' },
  js: { program: process.execPath, ending: 'mjs' },
  python: { program: 'python3', ending: 'py' },
} as const;

/** Programs that examples need and the project does not install, with what tells whether they are there. */
const probes = {
  curl: ['--version'],
  python3: ['-c', 'import gzip, json, sqlite3, urllib.request'],
} as const;

const missing = (Object.keys(probes) as (keyof typeof probes)[]).filter((program) => {
  try {
    execFileSync(program, probes[program], { stdio: 'ignore' });
    return false;
  } catch {
    return true;
  }
});

/** The program that an example needs and this machine has not; `undefined`: it can be run. */
export function missingProgram({ language, code }: Example): string | undefined {
  const needed = language === 'python' ? 'python3 ' : language === 'sh' ? code : '';
  return missing.find((program) => needed.includes(`${program} `));
}

/** Writes an example to a file of a folder, under the name that it gives itself, and runs it there to its end. */
export async function runExample(
  example: Example,
  { folder, service }: { readonly folder: string; readonly service: AskedService },
): Promise<ExampleResult> {
  const { program, ending } = runs[example.language];
  const file = example.file ?? `line-${example.line}.${ending}`;
  await writeFile(join(folder, file), example.code);
  const child = spawn(program, [file], {
    cwd: folder,
    env: environment(service),
    stdio: ['ignore', 'pipe', 'pipe'],
    ...{ timeout: patienceMs, killSignal: 'SIGKILL' },
  });
  const output = { stdout: '', stderr: '' };
  for (const stream of ['stdout', 'stderr'] as const) {
    child[stream].setEncoding('utf8').on('data', (text: string) => {
      output[stream] += text;
    });
  }
  const [code] = (await once(child, 'close')) as [number | null];
  return { code, ...output };
}

/** Nothing of the machine but its programs; the `node` of an example is the one that runs the tests. */
function environment({ origin, key }: AskedService): NodeJS.ProcessEnv {
  const { PATH = '', HOME } = process.env;
  return {
    ...(HOME && { HOME }),
    PATH: [dirname(process.execPath), PATH].join(delimiter),
    PYTHONIOENCODING: 'utf-8',
    MEDREF_URL: origin,
    MEDREF_KEY: key,
  };
}
