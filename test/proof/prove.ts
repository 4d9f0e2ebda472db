// npm run prove: every proof, and docs/RELIABILITY.md of what they found.
// In: kills=<points of the real list>, only=<proof,proof>. Out: the page, or with only= those sections on stdout;
// progress on stderr; exit 1 when something did not hold, 2 for a wrong argument.

import { writeFile } from 'node:fs/promises';
import { proveKills } from './kill-everywhere.ts';
import { proveManyImports } from './many-imports.ts';
import { proveMillionRecords } from './million-records.ts';
import { proveByTests } from './mocha-matrix.ts';
import { type Finding, reliabilityPage, type Section, sectionText } from './reliability-page.ts';

/** What the command is asked for. */
interface Choice {
  /** At how many random points imports of the real list are killed. */
  readonly kills: number;
  readonly only: readonly string[] | null;
}

type Say = (progress: string) => void;

/** A proof, and the part of the page that is its own. */
interface Proof {
  readonly heading: string;
  run(choice: Choice, say: Say): Promise<Finding>;
}

const proofs: Readonly<Record<string, Proof>> = {
  kill: { heading: 'Imports that are killed', run: ({ kills }, say) => proveKills(kills, say) },
  redis: {
    heading: 'A Redis that fails',
    run: () =>
      proveByTests(
        'Each fault strikes during an import while readers read, who may get 503 only while Redis is away, and never a part of a version.',
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
        ['test/importer/upstream-faults.test.ts'],
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
  many: { heading: 'A thousand imports', run: (_, say) => proveManyImports(say) },
  million: { heading: 'A million records', run: (_, say) => proveMillionRecords(say) },
};

const page = new URL('../../docs/RELIABILITY.md', import.meta.url);
const usage = `It takes kills=<1 to 100000> and only=<of ${Object.keys(proofs).join(',')}>, each once at most.`;

class WrongArgument extends Error {}

function parse(args: readonly string[]): Choice {
  const given = new Map<string, string>();
  for (const arg of args) {
    const [, name = '', value = ''] = /^(kills|only)=(.+)$/.exec(arg) ?? [];
    if (name === '' || given.has(name)) throw new WrongArgument(`"${arg}" is not understood. ${usage}`);
    given.set(name, value);
  }
  const kills = given.get('kills') ?? '300';
  if (!/^[1-9]\d{0,4}$|^100000$/.test(kills))
    throw new WrongArgument(`kills=${kills} is not a count. ${usage}`);
  const only = given.get('only')?.split(',') ?? null;
  const unknown = only?.find((name) => !Object.hasOwn(proofs, name));
  if (unknown !== undefined) throw new WrongArgument(`There is no proof "${unknown}". ${usage}`);
  return { kills: Number(kills), only };
}

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

async function prove(choice: Choice): Promise<boolean> {
  const sections: Section[] = [];
  for (const [name, proof] of Object.entries(proofs)) {
    if (choice.only && !choice.only.includes(name)) continue;
    sections.push(await sectionOf(name, proof, choice));
  }
  if (choice.only) process.stdout.write(sections.map(sectionText).join('\n'));
  else await writeFile(page, reliabilityPage('npm run prove', sections));
  const failed = sections.filter(({ faults }) => faults.length > 0);
  for (const { heading } of failed) process.stderr.write(`prove: did not hold: ${heading}\n`);
  return failed.length === 0;
}

try {
  process.exitCode = (await prove(parse(process.argv.slice(2)))) ? 0 : 1;
} catch (error) {
  if (!(error instanceof WrongArgument)) throw error;
  process.stderr.write(`${error.message}\n`);
  process.exitCode = 2;
}
