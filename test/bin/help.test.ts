// Tests the help of each command, and its examples.

import { expect } from 'chai';
import { medref } from '../support/medref.ts';

/** Returns the arguments of an example as a shell would split them, without settings and without the part after a pipe. */
function argumentsOf(line: string): string[] {
  const command = /\bmedref ([^|>)]*)/.exec(line)?.[1] ?? '';
  return [...command.matchAll(/"([^"]*)"|(\S+)/g)].map(([, quoted, plain]) => quoted ?? plain ?? '');
}

/** Returns the help of a command, and the names of its subcommands. */
async function helpOf(path: readonly string[]) {
  const { code, stdout, stderr } = await medref([...path, '--help'], {});
  expect({ code, stderr }).to.deep.equal({ code: 0, stderr: '' });
  const [, list = ''] = stdout.split('Commands:\n');
  const names = [...list.matchAll(/^ {2}([a-z]+)/gm)].map(([, name = '']) => name);
  return { text: stdout, below: names.filter((name) => name !== 'help') };
}

describe('the help', () => {
  it('has valid examples for each command within 80 columns', async () => {
    const [ofAll, ofKeys] = [await helpOf([]), await helpOf(['keys'])];
    const paths = [[], ...ofAll.below.map((it) => [it]), ...ofKeys.below.map((it) => ['keys', it])];
    expect(paths.length).to.be.above(13);
    for (const path of paths) {
      const [, examples = ''] = (await helpOf(path)).text.split('\nExamples:\n');
      const lines = [...examples.matchAll(/^ {4}# .+\n {4}(.+)$/gm)].map(([, line = '']) => line);
      expect(lines, path.join(' ')).not.to.be.empty;
      for (const line of examples.split('\n')) expect(line.length, line).to.be.at.most(80);
      for (const line of lines) {
        // The command checks settings after it has parsed the command line, and before it does anything.
        const { code, stderr } = await medref(argumentsOf(line), { KEEP_VERSIONS: '1' });
        expect(stderr, line).to.match(/^KEEP_VERSIONS is "1"; /);
        expect(code, line).to.equal(2);
      }
    }
  });
});
