import { expect } from 'chai';
import { examplesOf, isAsShown, strayCommands } from '../support/page-examples.ts';

const page = (...lines: string[]) => lines.join('\n');

describe('an example of a page', () => {
  it('is a block of a language that can be run, with its place, its name and the output that follows', () => {
    const text = page(
      ...['# One', '', '## Two', '', 'Text.', '', '```sh', 'echo a', '```', '', '```text', 'a', '```'],
      ...['### Three', '```js', '// list.mjs: prints b.', "console.log('b');", '```', '```json', '1', '```'],
    );
    expect(examplesOf('page.md', text)).to.deep.equal([
      {
        ...{ page: 'page.md', line: 8, heading: 'Two', language: 'sh', code: 'echo a\n', file: null },
        output: { format: 'text', text: 'a' },
      },
      {
        ...{ page: 'page.md', line: 16, heading: 'Three', language: 'js', file: 'list.mjs' },
        code: "// list.mjs: prints b.\nconsole.log('b');\n",
        output: { format: 'json', text: '1' },
      },
    ]);
  });

  it('prints nothing where the page shows no output', () => {
    const [example] = examplesOf('page.md', page('```sh', 'export A=1', '```', '', 'More.'));
    expect(example?.output).to.deep.equal({ format: 'text', text: '' });
    expect(isAsShown('', { format: 'text', text: '' })).to.equal(true);
    expect(isAsShown('a\n', { format: 'text', text: '' })).to.equal(false);
  });

  it('makes a page fail that has a block of which nobody knows what it is', () => {
    for (const [lines, message] of [
      [['```', 'echo a', '```'], 'line 1: a block is sh, js or python'],
      [['```bash', 'echo a', '```'], 'line 1: a block is sh, js or python'],
      [['```sh', 'echo a'], 'line 1: the block has no end'],
      [['```text', 'a', '```'], 'line 1: no example stands directly before'],
      [['```sh', 'echo a', '```', 'It prints:', '```text', 'a', '```'], 'line 5: no example stands directly'],
      [
        ['```sh', 'a', '```', '```text', 'a', '```', '```text', 'b', '```'],
        'line 7: the example before this',
      ],
    ] as const) {
      expect(() => examplesOf('page.md', page(...lines))).to.throw(message);
    }
  });

  it('is as shown where text is left out in the page, and is not where anything else differs', () => {
    const text = { format: 'text', text: 'version …: 3 records\n…\nend' } as const;
    expect(isAsShown('version 7: 3 records\na\nb\nend\n', text)).to.equal(true);
    for (const printed of ['version 7: 4 records\na\nend', 'version 7: 3 records\nend', '', 'x\nend'])
      expect(isAsShown(printed, text), printed).to.equal(false);
    expect(isAsShown('a.b', { format: 'text', text: 'a.b' })).to.equal(true);
    expect(isAsShown('axb', { format: 'text', text: 'a.b' })).to.equal(false);
  });

  it('may be shown as JSON with other white space, but not within its strings', () => {
    const shown = { format: 'json', text: '{\n  "a": [1, …],\n  "b": "c d"\n}' } as const;
    expect(isAsShown('{"a":[1,2,3],"b":"c d"}\n', shown)).to.equal(true);
    for (const printed of ['{"a":[1,2],"b":"cd"}', '{"a":[2,3],"b":"c d"}', '{"a":[1,2],"b":"c d","e":1}'])
      expect(isAsShown(printed, shown), printed).to.equal(false);
  });

  it('leaves no command on the page that is not run', () => {
    const text = page('Use curl or `curl -s`.', '```sh', 'curl a', '```', '    $ curl -s b', 'node c.mjs');
    expect(strayCommands(text)).to.deep.equal(['    $ curl -s b', 'node c.mjs']);
  });
});
