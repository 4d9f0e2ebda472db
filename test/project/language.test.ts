// The language of docs, comments, messages and test titles: the dictionary terms.yml, short sentences, and sound Markdown.

import { execFileSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { TextlintKernel, type TextlintKernelRule } from '@textlint/kernel';
import markdownPlugin from '@textlint/textlint-plugin-markdown';
import textPlugin from '@textlint/textlint-plugin-text';
import { expect } from 'chai';
import { lint as lintMarkdown } from 'markdownlint/promise';
// @ts-expect-error it has no types
import dictionary from 'textlint-rule-prh';
// @ts-expect-error it has no types
import sentenceLength from 'textlint-rule-sentence-length';
import { read, root } from '../support/project-files.ts';

const terms = fileURLToPath(new URL('terms.yml', import.meta.url));

/** Returns the default export of a CommonJS module, which loaders wrap in different ways. */
const exported = <T>(module: { default: T } | T): T =>
  module !== null && typeof module === 'object' && 'default' in module ? module.default : module;

/** About 25 words. */
const maxSentenceLength = 160;

const kernel = new TextlintKernel();
const plugins = [
  { pluginId: 'markdown', plugin: exported(markdownPlugin) },
  { pluginId: 'text', plugin: exported(textPlugin) },
];
const useDictionary = { ruleId: 'prh', rule: exported(dictionary), options: { rulePaths: [terms] } };
const useShortSentences = {
  ruleId: 'sentence-length',
  rule: exported(sentenceLength),
  options: { max: maxSentenceLength },
};

/** Returns the files of the project that Git knows and a pattern matches. */
function filesLike(pattern: RegExp): string[] {
  return execFileSync('git', ['ls-files'], { cwd: root, encoding: 'utf8' })
    .split('\n')
    .filter((file) => pattern.test(file));
}

/** Returns the comments and messages of code, each on its line, with all other lines empty. */
function proseOf(code: string): string {
  return code.split('\n').map(proseOfLine).join('\n');
}

function proseOfLine(line: string): string {
  const [, comment = ''] = /^\s*(?:\/\*\*|\*|--|#|.*[^:'"`\w]\/\/|\/\/) ?(.*)$/.exec(line) ?? [];
  const texts = [...line.matchAll(/(['"`])((?:(?!\1).){20,})\1/g)].map(([, , text = '']) => text);
  return [comment, ...texts.filter((text) => / [a-z]+ /.test(text))].join(' ').replace(/`[^`]*`/g, '`…`');
}

/** Returns the titles of the tests in a file, each on its line. */
function titlesOf(code: string): string {
  const title = /\b(?:it|describe)\((['"`])((?:(?!\1).)*)\1/;
  return code
    .split('\n')
    .map((line) => title.exec(line)?.[2] ?? '')
    .join('\n');
}

/** Returns the problems in texts as `file:line: message`. */
async function problemsIn(
  texts: Iterable<readonly [file: string, text: string]>,
  { ext, rules }: { ext: '.md' | '.txt'; rules: TextlintKernelRule[] },
): Promise<string> {
  const problems: string[] = [];
  for (const [file, text] of texts) {
    const { messages } = await kernel.lintText(text, { filePath: join(file), ext, plugins, rules });
    problems.push(...messages.map(({ line, message }) => `${file}:${line}: ${message.split('\n')[0]}`));
  }
  return problems.join('\n');
}

const join = (file: string) => `${root}${file}`;

describe('the language of', function () {
  this.timeout(120_000);
  const pages = filesLike(/^(?!\.github).*\.md$/);

  it('the documentation follows the dictionary, in short sentences', async () => {
    const texts = pages.map((file) => [file, read(file)] as const);
    const rules = [useDictionary, useShortSentences];
    expect(await problemsIn(texts, { ext: '.md', rules })).to.equal('');
  });

  it('comments and messages follow the dictionary', async () => {
    const sources = filesLike(
      /^(api|bench|bin|client|config|demo|examples|importer|shared)\/.*\.(ts|mjs|lua|py)$/,
    );
    const texts = sources.map((file) => [file, proseOf(read(file))] as const);
    expect(await problemsIn(texts, { ext: '.txt', rules: [useDictionary] })).to.equal('');
  });

  it('test titles follow the dictionary', async () => {
    const texts = filesLike(/^test\/.*\.ts$/).map((file) => [file, titlesOf(read(file))] as const);
    expect(await problemsIn(texts, { ext: '.txt', rules: [useDictionary] })).to.equal('');
  });

  it('deployment files follow the dictionary', async () => {
    const files = filesLike(
      /^(deploy\/.*\.(ya?ml|conf|service)|docker-compose\.yml|Dockerfile|\.github\/.*)$/,
    );
    const texts = files.map((file) => [file, proseOf(read(file))] as const);
    expect(await problemsIn(texts, { ext: '.txt', rules: [useDictionary] })).to.equal('');
  });

  it('commits are short and imperative', () => {
    const subjects = execFileSync('git', ['log', '--format=%s', '-20'], { cwd: root, encoding: 'utf8' });
    const isGood = (subject: string) =>
      /^[A-Z][a-z]+ .*[^.]$/.test(subject) && !/^\w+(ed|ing) /.test(subject) && subject.length <= 72;
    expect(
      subjects
        .trim()
        .split('\n')
        .filter((subject) => !isGood(subject)),
    ).to.deep.equal([]);
  });

  it('Markdown is sound: headings, links, lists and tables', async () => {
    const config = {
      'line-length': false,
      'no-inline-html': false,
      'code-block-style': false,
      'table-column-style': false,
    };
    const results = await lintMarkdown({ files: pages.map(join), config });
    const problems = Object.entries(results).flatMap(([file, errors]) =>
      errors.map(({ lineNumber, ruleNames, errorDetail }) =>
        [file.slice(root.length), lineNumber, ruleNames[1], errorDetail].join(':'),
      ),
    );
    expect(problems.join('\n')).to.equal('');
  });
});
