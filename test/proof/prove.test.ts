import { spawnSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { expect } from 'chai';

const prove = fileURLToPath(new URL('prove.ts', import.meta.url));

describe('npm run prove', () => {
  const wrong: [args: string[], sentence: RegExp][] = [
    [['300'], /^"300" is not understood\. /],
    [['kills=0'], /^kills=0 is not a count\. /],
    [['kills=1e3'], /^kills=1e3 is not a count\. /],
    [['kills=2', 'kills=3'], /^"kills=3" is not understood\. /],
    [['only=million,nothing'], /^There is no proof "nothing"\. /],
  ];
  for (const [args, sentence] of wrong) {
    it(`ends with 2 and says what it takes when it is given ${args.join(' ')}`, () => {
      const { status, stdout, stderr } = spawnSync(process.execPath, ['--import', 'tsx', prove, ...args], {
        encoding: 'utf8',
      });
      expect(status).to.equal(2);
      expect(stdout).to.equal('');
      expect(stderr)
        .to.match(sentence)
        .and.to.include('It takes kills=<1 to 100000> and only=<of kill,redis,');
    });
  }
});
