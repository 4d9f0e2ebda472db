import { execFile } from 'node:child_process';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { expect } from 'chai';
import { onPath } from '../../bench/installed.ts';
import { exitCodes } from '../../bin/context.ts';
import { commands, read } from '../support/project-files.ts';

const run = promisify(execFile);

describe('the systemd units', () => {
  const units = [
    { unit: 'medref-api', command: 'serve' },
    { unit: 'medref-api@', command: 'serve' },
    { unit: 'medref-importer', command: 'schedule' },
  ];
  const linesOf = (unit: string) => read(`deploy/systemd/${unit}.service`).split('\n');

  it('run commands that exist, from the built file, with the options of Node in its first line', () => {
    const [, options] = /^#!\/usr\/bin\/env -S node (.+)\n/.exec(read('bin/medref.ts')) ?? [];
    const { bin } = JSON.parse(read('package.json')) as { bin: { medref: string } };
    for (const { unit, command } of units) {
      expect(commands).to.include(command);
      expect(linesOf(unit)).to.include(
        `ExecStart=/usr/bin/node ${options} /opt/medref/${bin.medref} ${command}`,
      );
    }
  });

  it('restart after every end except wrong settings, and allow a graceful end', () => {
    for (const { unit } of units) {
      expect(linesOf(unit)).to.include.members([
        ...['Restart=on-failure', 'StartLimitIntervalSec=0', `RestartPreventExitStatus=${exitCodes.usage}`],
      ]);
      const [, seconds] = /^TimeoutStopSec=(\d+)$/m.exec(linesOf(unit).join('\n')) ?? [];
      expect(Number(seconds), unit).to.be.above(10);
    }
  });

  const analyze = onPath('systemd-analyze');
  const missing = analyze ? '' : ' (left out: systemd-analyze is not installed)';
  let folder = '';
  const fileOf = (unit: string) => join(folder, `${unit}.service`);
  before(async () => {
    folder = await mkdtemp(join(tmpdir(), 'medref-units-'));
    for (const { unit } of units) {
      // systemd also looks for the program, which has a different path on some machines.
      await writeFile(fileOf(unit), linesOf(unit).join('\n').replace('/usr/bin/node', process.execPath));
    }
  });
  after(() => rm(folder, { recursive: true, force: true }));

  /** Returns the output of systemd about the units, and whether it found no fault. */
  const analyzed = (args: readonly string[]) =>
    run(analyze as string, [...args, ...units.map(({ unit }) => fileOf(unit))]).then(
      (said) => ({ ...said, isGood: true }),
      ({ stdout, stderr }: { stdout: string; stderr: string }) => ({ stdout, stderr, isGood: false }),
    );

  (analyze ? it : it.skip)(`are understood by systemd${missing}`, async () => {
    const { stdout, stderr } = await analyzed(['verify', '--man=no']);
    const complaints = `${stdout}${stderr}`.split('\n').filter((line) => line.includes(folder));
    expect(complaints).to.deep.equal([]);
  });

  (analyze ? it : it.skip)(`are called well closed in by systemd: 1.2 of 10 at most${missing}`, async () => {
    const { stdout, isGood } = await analyzed([
      ...['security', '--offline=true', '--no-pager', '--threshold=12'],
    ]);
    expect(isGood, stdout).to.equal(true);
  });
});
