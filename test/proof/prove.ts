// npm run prove: every proof, and docs/RELIABILITY.md and a part of docs/SECURITY.md of what they found. In: kills=<points of the
// real list>, only=<proof,proof>, seed=<of what is random>, fsync=<of Redis>. Out: the page, or with only= those sections of it;
// progress on stderr; exit 1 when something did not hold, 2 for a wrong argument.

import { readFile, writeFile } from 'node:fs/promises';
import { sectionsOf } from '../../bench/page-sections.ts';
import { proveByTests } from './mocha-matrix.ts';
import { type Choice, parseChoice, WrongArgument } from './proof-choice.ts';
import { type Finding, reliabilityPage, type Section, sectionText, withSeen } from './reliability-page.ts';

type Say = (progress: string) => void;

/** A proof, which is loaded as it runs, and the part of the page that is its own. */
interface Proof {
  readonly heading: string;
  run(choice: Choice, say: Say): Promise<Finding>;
}

const proofs: Readonly<Record<string, Proof>> = {
  kill: {
    heading: 'Imports that are killed',
    run: async ({ kills }, say) => (await import('./kill-everywhere.ts')).proveKills(kills, say),
  },
  redis: {
    heading: 'A Redis that fails',
    run: async () =>
      proveByTests(
        `Each fault strikes during an import while readers read, who may get 503 only while Redis is away, and never a part of a version. ${(await import('../support/redis-server.ts')).proofSetUpText()}`,
        ['A Redis …', 'Expected'],
        ['test/proof/redis.test.ts', 'test/proof/long-standstill.proof.ts'],
      ),
  },
  upstream: {
    heading: 'An upstream at fault',
    run: () =>
      proveByTests(
        'A list of 100 products is live; then upstream is as the first column says. What is in quotation marks is what the import says.',
        ['An upstream …', 'Expected'],
        ['test/importer/upstream/upstream-faults.test.ts'],
      ),
  },
  model: {
    heading: 'The service against a model of it',
    run: () =>
      proveByTests(
        'Random imports, deaths, rollbacks and reads; after each of them all that readers see and all that Redis holds is compared with a small model.',
        ['What', 'Runs and commands'],
        ['test/model.test.ts'],
      ),
  },
  mirrors: {
    heading: 'Mirrors through a thousand random steps',
    run: async ({ seed }, say) => (await import('./random-mirrors.ts')).proveMirrors(seed, say),
  },
  chain: {
    heading: 'A chain of services that is killed',
    run: async ({ seed }, say) => (await import('./chain.ts')).proveChain(seed, say),
  },
  waiting: {
    heading: 'Ten thousand clients that wait',
    run: async (_, say) => (await import('./waiting.ts')).proveWaiting(say),
  },
  restart: {
    heading: 'Processes that are replaced',
    run: async (_, say) => (await import('./rolling-restarts.ts')).proveRestarts(say),
  },
  client: {
    heading: 'Mirrors by the client library',
    run: async ({ seed }, say) => (await import('./client-mirrors.ts')).proveClientMirrors(seed, say),
  },
  security: {
    heading: 'Clients who mean harm',
    run: async ({ seed }, say) => (await import('./hostile-days.ts')).proveSecurity(seed, say),
  },
  many: {
    heading: 'A thousand imports',
    run: async (_, say) => (await import('./many-imports.ts')).proveManyImports(say),
  },
  million: {
    heading: 'A million records',
    run: async (_, say) => (await import('./million-records.ts')).proveMillionRecords(say),
  },
};

const page = new URL('../../docs/RELIABILITY.md', import.meta.url);

/** Shows the tables of the proof of that name as well, under a heading of its own. */
const securityPage = new URL('../../docs/SECURITY.md', import.meta.url);

/** What a proof found; one that was thrown out of found what it threw. */
async function sectionOf(name: string, proof: Proof, choice: Choice): Promise<Section> {
  const say: Say = (progress) => void process.stderr.write(`prove: ${name}: ${progress}\n`);
  say('begins');
  const { heading } = proof;
  try {
    const finding = await proof.run(choice, say);
    for (const fault of finding.faults) say(`did not hold: ${fault}`);
    return { heading, ...finding };
  } catch (error) {
    say(`did not hold: ${(error as Error).stack}`);
    return { heading, text: 'The proof came to no end.', tables: [], faults: [(error as Error).message] };
  }
}

/** Proves, and writes what was found: the whole page, or the sections of what was chosen into the page that is there. */
async function prove(choice: Choice): Promise<boolean> {
  process.env['PROOF_FSYNC'] = choice.fsync; // For the servers of proofs, also in the processes of tests.
  const texts = choice.only ? sectionsOf(await readFile(page, 'utf8')) : new Map<string, string>();
  const failed: string[] = [];
  for (const [name, proof] of Object.entries(proofs)) {
    if (choice.only && !choice.only.includes(name)) continue;
    const section = await sectionOf(name, proof, choice);
    texts.set(proof.heading, sectionText(section));
    if (name === 'security')
      await writeFile(securityPage, withSeen(await readFile(securityPage, 'utf8'), section));
    if (section.faults.length > 0) failed.push(proof.heading);
  }
  const inOrder = Object.values(proofs).flatMap(({ heading }) => texts.get(heading) ?? []);
  await writeFile(page, reliabilityPage('npm run prove', inOrder));
  for (const heading of failed) process.stderr.write(`prove: did not hold: ${heading}\n`);
  return failed.length === 0;
}

try {
  process.exitCode = (await prove(parseChoice(process.argv.slice(2), Object.keys(proofs)))) ? 0 : 1;
} catch (error) {
  if (!(error instanceof WrongArgument)) throw error;
  process.stderr.write(`${error.message}\n`);
  process.exitCode = 2;
}
