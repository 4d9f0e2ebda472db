// In: places where the product is broken on purpose, one at a time. Out: which of them the tests notice.
// Each is broken in a copy of the project; the tests that are to notice it run there.

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { cp, mkdtemp, readdir, readFile, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { type Mutant, mutants } from './mutant-list.ts';
import type { Finding } from './reliability-page.ts';

const root = fileURLToPath(new URL('../..', import.meta.url));

/** What the copy does not have: what is installed, which is linked to, as real lists are, and the history. */
const notCopied = ['node_modules', '.git'];

/** Redis scripts, which no compiler touches. */
const scripts = 'importer/scripts';

/** At least so many percent have to be noticed. */
const leastNoticed = 95;

/** How long the tests of one mutant may take, in ms: one that hangs is noticed. */
const patienceMs = 180_000;

const text = `The product is broken on purpose at ${mutants.length} places that matter, one at a time: a condition, a bound, an await, a header, a step of a
script. The tests that ought to notice run then; ${leastNoticed} % of the places have to be noticed.`;

/** What came of one mutant: the first test that failed, or nothing. */
interface Verdict {
  readonly mutant: Mutant;
  readonly noticedBy: string | null;
}

/** How many copies are broken at once: most tests wait for something most of the time. */
const copyCount = 2;

/** Breaks the product at each place, and runs the tests that are to notice. */
export async function proveMutants(say: (progress: string) => void): Promise<Finding> {
  const folder = await mkdtemp(join(tmpdir(), 'medref-mutants-'));
  try {
    const copies = Array.from({ length: copyCount }, (_, n) => join(folder, String(n), 'medref'));
    for (const copy of copies) await copyProject(copy);
    const faults = await checkUnbroken(copies, say);
    const verdicts: Verdict[] = [];
    const left = faults.length > 0 ? [] : [...mutants];
    const judgeNext = async (copy: string) => {
      for (let mutant = left.shift(); mutant; mutant = left.shift()) {
        const verdict = await judge(copy, mutant);
        verdicts.push(verdict);
        const { noticedBy } = verdict;
        say(`${mutant.what}: ${noticedBy === null ? 'NOT NOTICED' : `noticed by "${noticedBy}"`}`);
      }
    };
    await Promise.all(copies.map(judgeNext));
    verdicts.sort((a, b) => mutants.indexOf(a.mutant) - mutants.indexOf(b.mutant));
    return finding(verdicts, faults);
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

async function copyProject(copy: string): Promise<void> {
  for (const path of await readdir(root)) {
    if (!notCopied.includes(path)) await cp(join(root, path), join(copy, path), { recursive: true });
  }
  await writeFile(
    join(copy, '.mocharc.json'),
    JSON.stringify({ 'node-option': ['import=tsx'], timeout: 30_000 }),
  );
  await symlink(join(root, 'node_modules'), join(copy, 'node_modules'));
  await symlink(join(root, '../shared'), join(copy, '../shared'));
}

/** Every test that is to notice something must hold while nothing is broken. @returns those that do not */
async function checkUnbroken(copies: readonly string[], say: (progress: string) => void): Promise<string[]> {
  const tests = [...new Set(mutants.flatMap((mutant) => mutant.tests))];
  say(`${tests.length} test files, while nothing is broken`);
  const failed = await Promise.all(
    copies.map((copy, n) => {
      const some = tests.filter((_, i) => i % copies.length === n);
      return firstFailure(copy, some, patienceMs * some.length);
    }),
  );
  return failed
    .flatMap((title) => title ?? [])
    .map((title) => `A test fails while nothing is broken: ${title}.`);
}

async function judge(copy: string, mutant: Mutant): Promise<Verdict> {
  const path = join(copy, mutant.file);
  const source = await readFile(path, 'utf8');
  if (source.split(mutant.from).length !== 2)
    throw new Error(`"${mutant.from}" is not there once in ${mutant.file}: the list of mutants is stale.`);
  try {
    // As a function, so that a dollar sign is one.
    await writeFile(
      path,
      source.replace(mutant.from, () => mutant.to),
    );
    await build(copy);
    return { mutant, noticedBy: await firstFailure(copy, mutant.tests, patienceMs) };
  } finally {
    await writeFile(path, source);
  }
}

/** Builds the copy, whatever its types, since tests run what is built as processes, too. */
async function build(copy: string): Promise<void> {
  const tsc = spawn(join(root, 'node_modules/.bin/tsc'), ['-p', 'bin', '--noCheck'], { cwd: copy });
  const [code] = (await once(tsc, 'close')) as [number];
  if (code !== 0) throw new Error('The copy that is broken on purpose cannot be built.');
  await cp(join(copy, scripts), join(copy, 'dist', scripts), {
    recursive: true,
    filter: (path) => !path.endsWith('.ts'),
  });
}

/** The title of the first test that fails; `null` where all hold. @param ms how long they may take */
async function firstFailure(copy: string, tests: readonly string[], ms: number): Promise<string | null> {
  const mocha = join(root, 'node_modules/mocha/bin/mocha.js');
  const args = [mocha, '--bail', '--exit', '--reporter', 'json', ...tests];
  const child = spawn(process.execPath, args, {
    cwd: copy,
    stdio: ['ignore', 'pipe', 'ignore'],
    detached: true,
  });
  let output = '';
  child.stdout.setEncoding('utf8').on('data', (text: string) => {
    output += text;
  });
  const timer = setTimeout(() => process.kill(-(child.pid as number), 'SIGKILL'), ms);
  const code = await new Promise((resolve) => child.once('close', resolve));
  clearTimeout(timer);
  if (code === 0) return null;
  const json = /^\{\n {2}"stats"[\s\S]*^\}/m.exec(output)?.[0];
  const { failures = [] } = json ? (JSON.parse(json) as { failures?: { fullTitle: string }[] }) : {};
  return failures[0]?.fullTitle ?? 'a run that came to no end';
}

function finding(verdicts: readonly Verdict[], faults: readonly string[]): Finding {
  const unnoticed = verdicts.filter(({ noticedBy }) => noticedBy === null);
  const noticed = verdicts.length - unnoticed.length;
  const isEnough = noticed * 100 >= leastNoticed * verdicts.length;
  const missing = unnoticed.filter(({ mutant }) => !mutant.why).map(({ mutant }) => mutant.what);
  return {
    text,
    tables: [
      {
        head: ['Broken', 'In', 'Noticed by'],
        rows: verdicts.map(({ mutant, noticedBy }) => [
          ...[mutant.what, mutant.file, noticedBy ?? `not noticed: ${mutant.why ?? 'a test is missing'}`],
        ]),
      },
    ],
    faults: [
      ...faults,
      ...(isEnough ? [] : [`Only ${noticed} of ${verdicts.length} were noticed.`]),
      ...missing.map((what) => `Not noticed, and not explained: ${what}.`),
    ],
  };
}
