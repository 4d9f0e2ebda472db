// Completion as one sees it: each shell runs its script, and is asked what it offers.

import { execFile } from 'node:child_process';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { expect } from 'chai';
import { onPath } from '../../bench/installed.ts';
import { completionScript } from '../../bin/completion.ts';
import { medref } from '../support/medref.ts';

const run = promisify(execFile);
const all = ['products', 'drugs', 'companies'];
const imported = ['products', 'companies'];

/** What a shell offers for a line that ends where one presses Tab, without order. */
const offers: Record<'bash' | 'zsh' | 'fish', (folder: string, line: string) => Promise<string[]>> = {
  async bash(folder, line) {
    const words = line.split(' ').map((word) => `'${word}'`);
    const script = `. ./medref.bash; COMP_WORDS=(${words.join(' ')}); COMP_CWORD=${words.length - 1}
      _medref; printf '%s\\n' "\${COMPREPLY[@]}"`;
    return linesOf((await run('bash', ['--norc', '-c', script], { cwd: folder })).stdout);
  },
  async zsh(folder, line) {
    // Completion is a part of zsh's line editor, which wants a terminal. What is offered is told as it is added.
    const script = `zmodload zsh/zpty
      zpty shell zsh -f -i
      zpty -w shell "cd '${folder}'; PS1=; autoload -Uz compinit && compinit -u -d '${folder}/dump'; . ./medref.zsh"
      zpty -w shell 'function _tell { compadd () { builtin compadd -O found "$@"; print -l -- $found >> ./offered; builtin compadd "$@" }; _main_complete; touch ./done }'
      zpty -w shell 'zle -C tell complete-word _tell; bindkey "^I" tell; touch ./ready'
      while [[ ! -e '${folder}/ready' ]]; do sleep 0.05; done
      rm -f '${folder}/ready' '${folder}/offered' '${folder}/done'
      zpty -w -n shell ${quoted(line)}$'\\t'
      while [[ ! -e '${folder}/done' ]]; do sleep 0.05; done
      zpty -d shell`;
    await run('zsh', ['-f', '-c', script], { cwd: folder, timeout: 30_000 });
    const { stdout } = await run('sh', ['-c', 'cat offered 2>/dev/null || true'], { cwd: folder });
    return [...new Set(linesOf(stdout))];
  },
  async fish(folder, line) {
    const script = `source ./medref.fish; complete -C ${quoted(line)}`;
    const { stdout } = await run('fish', ['--no-config', '-c', script], {
      cwd: folder,
      env: { ...process.env, HOME: folder },
    });
    return linesOf(stdout).map((it) => it.split('\t')[0] as string);
  },
};

function linesOf(text: string): string[] {
  return text.split('\n').filter((line) => line !== '');
}

function quoted(text: string): string {
  return `'${text.replaceAll("'", "'\\''")}'`;
}

const cases: [line: string, offered: string[]][] = [
  ['medref im', ['import']],
  ['medref re', ['resume', 'rejects']],
  ['medref import ', imported],
  ['medref import products co', ['companies']],
  ['medref import --f', ['--force']],
  ['medref import --dry-run --f', ['--force']],
  ['medref diff ', all],
  ['medref versions dr', ['drugs']],
  ['medref rollback dr', []],
  ['medref rollback --to ', []],
  ['medref status --m', ['--max-age']],
  ['medref keys ', ['create', 'list', 'revoke', 'rotate']],
  ['medref keys create --c', ['--client', '--collections']],
  ['medref keys create --client ', []],
  ['medref keys create --client import --e', ['--expires']],
  ['medref completion ', ['bash', 'zsh', 'fish']],
  ['medref nothing-like-it', []],
];

describe('the completion of a shell', function () {
  this.timeout(60_000);
  let folder: string;
  before(async () => {
    folder = await mkdtemp(join(tmpdir(), 'medref-test-completion-'));
    for (const shell of Object.keys(offers)) {
      const { code, stdout, stderr } = await medref(['completion', shell], {});
      expect({ code, stderr }).to.deep.equal({ code: 0, stderr: '' });
      await writeFile(join(folder, `medref.${shell}`), stdout);
    }
  });
  after(() => rm(folder, { recursive: true, force: true }));

  for (const [shell, offer] of Object.entries(offers)) {
    const isMissing = onPath(shell) === undefined;
    for (const [line, expected] of cases) {
      const title = `offers ${expected.join(', ') || 'nothing'} after "${line}" in ${shell}`;
      if (isMissing) it.skip(`${title} (left out: there is no ${shell} on this machine)`);
      else
        it(title, async () => {
          expect((await offer(folder, line)).sort()).to.deep.equal([...expected].sort());
        });
    }
  }

  it('offers every command', async () => {
    const { stdout } = await medref(['--help'], {});
    const section = stdout.split('Commands:\n')[1]?.split('\n\n')[0] ?? '';
    const commands = [...section.matchAll(/^ {2}(\w+)/gm)].map(([, name = '']) => name);
    const offered = await offers.bash(folder, 'medref ');
    expect(offered.sort()).to.deep.equal(commands.filter((name) => name !== 'help').sort());
  });

  it('is one script a shell, as JSON too', async () => {
    const { json } = await medref(['completion', 'bash', '--json'], {});
    const text = await medref(['completion', 'bash'], {});
    expect(json()).to.deep.equal({ shell: 'bash', script: text.stdout });
  });

  it('ends with 2 for a shell that there is none for, naming those that there are', async () => {
    const { code, stdout, stderr } = await medref(['completion', 'tcsh'], {});
    expect({ code, stdout }).to.deep.equal({ code: 2, stdout: '' });
    expect(stderr).to.equal('There is no completion for "tcsh"; there is one for bash, zsh, fish.\n');
  });

  for (const shell of ['bash', 'zsh', 'fish'] as const) {
    const title = `takes descriptions with marks that mean something to ${shell}`;
    if (onPath(shell) === undefined) it.skip(`${title} (left out: there is no ${shell} on this machine)`);
    else
      it(title, async () => {
        const what = `it's "odd": $HOME \\ \`ls\``;
        const outlines = [
          { path: '', words: [{ word: 'one', what }], options: [{ word: '--two', what, takesValue: true }] },
          { path: 'one', words: [{ word: 'three', what }], options: [] },
        ];
        const script = completionScript(shell, outlines);
        const own = await mkdtemp(join(tmpdir(), 'medref-test-completion-'));
        try {
          await writeFile(join(own, `medref.${shell}`), script);
          expect(await offers[shell](own, 'medref o')).to.deep.equal(['one']);
          expect(await offers[shell](own, 'medref one t')).to.deep.equal(['three']);
        } finally {
          await rm(own, { recursive: true, force: true });
        }
      });
  }
});
