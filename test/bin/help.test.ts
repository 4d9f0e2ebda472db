// The help of each command, and its examples.

import { expect } from 'chai';
import { examples } from '../../bin/examples.ts';
import { medref } from '../support/medref.ts';

/** The arguments of an example, as a shell would split it; settings before it and what it leads into are left out. */
function argumentsOf(line: string): string[] {
  const command = /\bmedref ([^|>)]*)/.exec(line)?.[1] ?? '';
  return [...command.matchAll(/"([^"]*)"|(\S+)/g)].map(([, quoted, plain]) => quoted ?? plain ?? '');
}

/** The commands that a help lists below one. */
async function commandsIn(path: readonly string[]): Promise<string[]> {
  const { stdout } = await medref([...path, '--help'], {});
  const [, list = ''] = stdout.split('Commands:\n');
  return [...list.matchAll(/^ {2}([a-z]+)/gm)].map(([, name = '']) => name).filter((name) => name !== 'help');
}

/** The paths of all commands, that of medref itself included. */
async function commandPaths(): Promise<string[]> {
  const ofKeys = await commandsIn(['keys']);
  return ['', ...(await commandsIn([])), ...ofKeys.map((name) => `keys ${name}`)];
}

describe('the help', () => {
  it('has examples for each command, and for no other', async () => {
    expect(Object.keys(examples).sort()).to.deep.equal((await commandPaths()).sort());
    for (const [path, its] of Object.entries(examples)) expect(its, path).not.to.be.empty;
  });

  for (const [path, its] of Object.entries(examples)) {
    const name = `medref ${path}`.trim();
    it(`of ${name} ends with its examples`, async () => {
      const { code, stdout, stderr } = await medref([...path.split(' ').filter(Boolean), '--help'], {});
      expect({ code, stderr }).to.deep.equal({ code: 0, stderr: '' });
      const shown = its.map(([line, what]) => `    # ${what}\n    ${line}\n`).join('');
      expect(stdout).to.include(`\nExamples:\n${shown}`);
    });

    for (const [line] of its) {
      it(`of ${name} has an example that is taken: ${line}`, async () => {
        // Settings are checked after the command line was understood, and before anything is done.
        const { code, stderr } = await medref(argumentsOf(line), { KEEP_VERSIONS: '1' });
        expect(stderr).to.match(/^KEEP_VERSIONS is "1"; /);
        expect(code).to.equal(2);
      });
    }
  }

  it('has no example of more than 80 columns', () => {
    for (const [line, what] of Object.values(examples).flat()) {
      expect(line.length, line).to.be.at.most(76);
      expect(what.length, what).to.be.at.most(74);
    }
  });
});
