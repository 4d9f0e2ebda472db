// Runs lint and type checks as a test, so that they run in parallel with the others.

import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { expect } from 'chai';
import { root } from '../support/project-files.ts';

const run = promisify(execFile);

describe('the source', function () {
  this.timeout(120_000);

  for (const [what, [program, ...args]] of [
    ['is written as biome wants it', ['biome', 'check', '.']],
    ['has no error of types', ['tsc', '--singleThreaded']], // Tests use the other processor.
  ] as const) {
    it(what, async () => {
      const env = { ...process.env, GOGC: '400' }; // tsc is written in Go. With this value it collects its garbage less often.
      const said = await run(join(root, 'node_modules/.bin', program), args, { cwd: root, env }).then(
        () => '',
        ({ stdout, stderr }: { stdout: string; stderr: string }) => stdout + stderr,
      );
      expect(said).to.equal('');
    });
  }
});
