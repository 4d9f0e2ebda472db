import { spawnSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import { expect } from 'chai';
import { sectionsOf } from '../../bench/page-sections.ts';
import { serverKnowsWaitaof } from '../support/redis-server.ts';
import { parseChoice, WrongArgument } from './proof-choice.ts';
import { reliabilityPage, sectionText, withSeen } from './reliability-page.ts';

const prove = fileURLToPath(new URL('prove.ts', import.meta.url));

describe('npm run prove', () => {
  const names = ['kill', 'million'];

  it('runs all proofs, with 300 kills of the whole list, unless it is told otherwise', () => {
    const usual = parseChoice([], names);
    expect(usual).to.deep.include({ kills: 300, only: null });
    expect(usual.seed).to.be.within(1, 99_999);
    expect(parseChoice(['only=million,kill', 'kills=7', 'seed=12'], names)).to.deep.equal({
      ...{
        kills: 7,
        only: ['million', 'kill'],
        seed: 12,
        fsync: serverKnowsWaitaof() ? 'everysec' : 'always',
      },
    });
    expect(parseChoice(['--only', 'million', '--seed=12', 'kills=7', 'fsync=everysec'], names)).to.deep.equal(
      {
        ...{ kills: 7, only: ['million'], seed: 12, fsync: 'everysec' },
      },
    );
  });

  const wrong: [args: string[], sentence: RegExp][] = [
    [['300'], /^"300" is not understood\. /],
    [['kills=0'], /^kills=0 is not a count\. /],
    [['kills=1e3'], /^kills=1e3 is not a count\. /],
    [['kills=100001'], /^kills=100001 is not a count\. /],
    [['seed=0'], /^seed=0 is not a seed\. /],
    [['fsync=no'], /^fsync=no is not a set-up\. /],
    [['kills=2', 'kills=3'], /^"kills=3" is not understood\. /],
    [['only=million,nothing'], /^There is no proof "nothing"\. /],
  ];
  for (const [args, sentence] of wrong) {
    it(`says what it takes when it is given ${args.join(' ')}`, () => {
      expect(() => parseChoice(args, names))
        .to.throw(WrongArgument, sentence)
        .with.property('message')
        .that.includes(
          'It takes kills=<1 to 100000>, seed=<1 to 99999>, fsync=<always or everysec> and only=<of kill,million>',
        );
    });
  }

  it('ends with 2 for a wrong argument, and proves nothing', () => {
    const args = ['--import', 'tsx', prove, 'only=nothing'];
    const { status, stdout, stderr } = spawnSync(process.execPath, args, { encoding: 'utf8' });
    expect([status, stdout]).to.deep.equal([2, '']);
    expect(stderr).to.match(/^There is no proof "nothing"\. It takes kills=.* only=<of kill,redis,/);
  });

  it('writes a page of sections, of which each can be written anew by itself', () => {
    const section = (heading: string, faults: string[]) =>
      sectionText({ heading, text: 'What was done.', tables: [{ head: ['A'], rows: [[1_000]] }], faults });
    const whole = reliabilityPage('npm run prove', [
      section('One', []),
      section('Two', ['It broke.', 'Twice.']),
    ]);
    expect(whole).to.include('\n**2 things did not hold.**\n');
    expect(whole).to.match(
      /\n## One\n\n\d{4}-\d\d-\d\d, .+, Node [\d.]+, Redis [\d.]+\.\n\nWhat was done\.\n\n\| A \|/,
    );
    const sections = sectionsOf(whole);
    expect([...sections.keys()]).to.deep.equal(['One', 'Two']);
    expect(reliabilityPage('npm run prove', [...sections.values()])).to.equal(whole);
    sections.set('Two', section('Two', []));
    const mended = reliabilityPage('npm run prove', [...sections.values()]);
    expect(mended).to.include('\nEverything held.\n').and.not.include('It broke.');
    expect(mended).to.include(sections.get('One') as string);
  });

  it('shows what it saw of security on the page of that, in its own section', async () => {
    const page = await readFile(new URL('../../docs/SECURITY.md', import.meta.url), 'utf8');
    const table = { head: ['A'], rows: [[1_000]] };
    const seen = withSeen(page, { heading: 'One', text: 'Done.', tables: [table], faults: ['It broke.'] });
    expect(seen).to.include('\n- **Did not hold:** It broke.\n\n| A |\n| --- |\n| 1,000 |\n');
    const others = (text: string) => [...sectionsOf(text)].filter(([heading]) => heading !== 'What was seen');
    expect(others(seen)).to.deep.equal(others(page)).and.not.deep.equal([]);
    expect(() => withSeen('# Security\n', { heading: 'One', text: '', tables: [], faults: [] })).to.throw();
  });

  it('names test files that are there', async () => {
    const source = await readFile(prove, 'utf8');
    const files = source.match(/test\/[\w/.-]+\.(test|proof)\.ts/g) ?? [];
    expect(files).to.include('test/importer/upstream/upstream-faults.test.ts');
    for (const file of files)
      expect(existsSync(new URL(`../../${file}`, import.meta.url)), file).to.equal(true);
  });
});
