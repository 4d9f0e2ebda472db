// Clusters and Dragonfly run a script only where it says before which keys it touches.

import { readdirSync, readFileSync } from 'node:fs';
import { expect } from 'chai';

const folder = new URL('../../../importer/scripts/', import.meta.url);

describe('a script', () => {
  for (const file of readdirSync(folder).filter((name) => name.endsWith('.lua'))) {
    it(`touches no key that it does not declare: ${file}`, () => {
      const code = readFileSync(new URL(file, folder), 'utf8').replaceAll(/--.*/g, '');
      const calls = [...code.matchAll(/redis\.p?call\(([^,)]+)(?:, *([^,)]+))?/g)];
      expect(calls).not.to.have.length(0);
      // setOrDelete is the one function that is given a key.
      const isDeclared = ([, command = '', key = '']: RegExpMatchArray) =>
        ["'TIME'", "'PUBLISH'"].includes(command) || /^KEYS\[/.test(key) || key === 'key';
      expect(calls.filter((call) => !isDeclared(call)).map(([call]) => call)).to.deep.equal([]);
      for (const [, key] of code.matchAll(/setOrDelete\(([^,]+),/g))
        expect(key).to.match(/^(KEYS\[\d+\]|key)$/);
      expect(code).not.to.match(/redis\.(setresp|set_repl|replicate_commands)/);
    });
  }
});
