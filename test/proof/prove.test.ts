import { spawnSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { expect } from 'chai';
import { parseChoice, WrongArgument } from './proof-choice.ts';

const prove = fileURLToPath(new URL('prove.ts', import.meta.url));

describe('npm run prove', () => {
  const names = ['kill', 'million'];

  it('runs all proofs, with 300 kills of the whole list, unless it is told otherwise', () => {
    expect(parseChoice([], names)).to.deep.equal({ kills: 300, only: null });
    expect(parseChoice(['only=million,kill', 'kills=7'], names)).to.deep.equal({
      ...{ kills: 7, only: ['million', 'kill'] },
    });
  });

  const wrong: [args: string[], sentence: RegExp][] = [
    [['300'], /^"300" is not understood\. /],
    [['kills=0'], /^kills=0 is not a count\. /],
    [['kills=1e3'], /^kills=1e3 is not a count\. /],
    [['kills=100001'], /^kills=100001 is not a count\. /],
    [['kills=2', 'kills=3'], /^"kills=3" is not understood\. /],
    [['only=million,nothing'], /^There is no proof "nothing"\. /],
  ];
  for (const [args, sentence] of wrong) {
    it(`says what it takes when it is given ${args.join(' ')}`, () => {
      expect(() => parseChoice(args, names))
        .to.throw(WrongArgument, sentence)
        .with.property('message')
        .that.includes('It takes kills=<1 to 100000> and only=<of kill,million>');
    });
  }

  it('ends with 2 for a wrong argument, and proves nothing', () => {
    const args = ['--import', 'tsx', prove, 'only=nothing'];
    const { status, stdout, stderr } = spawnSync(process.execPath, args, { encoding: 'utf8' });
    expect([status, stdout]).to.deep.equal([2, '']);
    expect(stderr).to.match(/^There is no proof "nothing"\. It takes kills=.* only=<of kill,redis,/);
  });
});
