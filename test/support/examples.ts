// The examples of a page of the documentation, with the output that the page shows; run as a reader runs them.

import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { writeFile } from 'node:fs/promises';
import { delimiter, dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

const root = new URL('../../', import.meta.url);

/** The languages that examples are written in; other fenced blocks show output, or nothing that can be run. */
const languages = ['sh', 'js', 'python'] as const;

export type Language = (typeof languages)[number];

/** What a page shows as the output of an example: JSON with any white space between its parts, or text. */
export interface ShownOutput {
  readonly format: 'json' | 'text';
  readonly text: string;
}

export interface Example {
  /** `docs/CONSUMERS.md` */
  readonly page: string;
  /** The line of the page on which its code begins. */
  readonly line: number;
  /** The heading that it stands under. */
  readonly heading: string;
  readonly language: Language;
  readonly code: string;
  /** The file that its first line names; `null` where it names none. */
  readonly file: string | null;
  /** An example without an output in the page prints nothing. */
  readonly output: ShownOutput;
}

/** The text of a page. */
export function readPage(page: string): string {
  return readFileSync(fileURLToPath(new URL(page, root)), 'utf8');
}

/** The examples of a page, in its order. @throws Error where a fenced block is not as blocks of a page have to be */
export function examplesOf(page: string, text = readPage(page)): Example[] {
  const examples: Example[] = [];
  const lines = text.split('\n');
  let heading = '';
  for (let at = 0; at < lines.length; at += 1) {
    const line = lines[at] as string;
    heading = /^#+ (.+)$/.exec(line)?.[1] ?? heading;
    const language = /^```(.*)$/.exec(line)?.[1];
    if (language === undefined) continue;
    const where = `${page}, line ${at + 1}`;
    const end = lines.indexOf('```', at + 1);
    if (end === -1) throw new Error(`${where}: the block has no end.`);
    const block = lines.slice(at + 1, end).join('\n');
    if (isLanguage(language)) {
      const file = /^(?:\/\/|#) ([\w-]+\.\w+): /.exec(block)?.[1] ?? null;
      const output = { format: 'text', text: '' } as const;
      examples.push({ page, line: at + 2, heading, language, code: `${block}\n`, file, output });
    } else if (language === 'json' || language === 'text') {
      const example = examples.pop();
      // Prose between the two would leave open which of them the output belongs to.
      if (!example || lastLineBefore(lines, at) !== '```')
        throw new Error(`${where}: no example stands directly before this output.`);
      if (example.output.text !== '')
        throw new Error(`${where}: the example before this has an output already.`);
      examples.push({ ...example, output: { format: language, text: block } });
    } else throw new Error(`${where}: a block is sh, js or python, or their output: json or text.`);
    at = end;
  }
  return examples;
}

function isLanguage(text: string): text is Language {
  return (languages as readonly string[]).includes(text);
}

function lastLineBefore(lines: readonly string[], at: number): string {
  return lines.slice(0, at).findLast((line) => line !== '') ?? '';
}

/** Lines that would be run by a reader of the page, and are not in an example. */
export function strayCommands(text: string): string[] {
  const prose = text.replace(/^```.*?^```$/gms, '');
  return prose.split('\n').filter((line) => /^\s*(?:\$ )?(?:curl|node|python3) /.test(line));
}

/** Whether an example printed what the page shows; `…` in the page stands for any text, as short as can be. */
export function isAsShown(printed: string, { format, text }: ShownOutput): boolean {
  const plain = format === 'json' ? withoutSpace : (it: string) => it.trimEnd();
  const pattern = plain(text).split('…').map(escaped).join('.*?');
  return new RegExp(`^${pattern}$`, 's').test(plain(printed));
}

/** JSON without the white space between its parts. */
function withoutSpace(text: string): string {
  return text.replace(/("(?:[^"\\]|\\.)*")|\s+/g, '$1');
}

function escaped(text: string): string {
  return text.replace(/[.*+?^${}()|[\]\\]/g, '\\$&');
}

/** The service that an example asks. */
export interface AskedService {
  readonly origin: string;
  readonly key: string;
}

export interface ExampleResult {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

/** An example that takes longer than this is ended, in ms. */
const patienceMs = 30_000;

/** How a file of each language is run. */
const runs = {
  sh: { program: 'sh', ending: 'sh' },
  js: { program: process.execPath, ending: 'mjs' },
  python: { program: 'python3', ending: 'py' },
} as const;

/** Programs that examples need and the project does not install, with what tells whether they are there. */
const probes = {
  curl: ['--version'],
  python3: ['-c', 'import gzip, json, sqlite3, urllib.request'],
} as const;

const missing = (Object.keys(probes) as (keyof typeof probes)[]).filter((program) => {
  try {
    execFileSync(program, probes[program], { stdio: 'ignore' });
    return false;
  } catch {
    return true;
  }
});

/** The program that an example needs and this machine has not; `undefined`: it can be run. */
export function missingProgram({ language, code }: Example): string | undefined {
  const needed = language === 'python' ? 'python3 ' : language === 'sh' ? code : '';
  return missing.find((program) => needed.includes(`${program} `));
}

/** Writes an example to a file of a folder, under the name that it gives itself, and runs it there to its end. */
export async function runExample(
  example: Example,
  { folder, service }: { readonly folder: string; readonly service: AskedService },
): Promise<ExampleResult> {
  const { program, ending } = runs[example.language];
  const file = example.file ?? `line-${example.line}.${ending}`;
  await writeFile(join(folder, file), example.code);
  const child = spawn(program, [file], {
    cwd: folder,
    env: environment(service),
    stdio: ['ignore', 'pipe', 'pipe'],
    ...{ timeout: patienceMs, killSignal: 'SIGKILL' },
  });
  const output = { stdout: '', stderr: '' };
  for (const stream of ['stdout', 'stderr'] as const) {
    child[stream].setEncoding('utf8').on('data', (text: string) => {
      output[stream] += text;
    });
  }
  const [code] = (await once(child, 'close')) as [number | null];
  return { code, ...output };
}

/** Nothing of the machine but its programs; the `node` of an example is the one that runs the tests. */
function environment({ origin, key }: AskedService): NodeJS.ProcessEnv {
  const { PATH = '', HOME } = process.env;
  return {
    ...(HOME && { HOME }),
    PATH: [dirname(process.execPath), PATH].join(delimiter),
    PYTHONIOENCODING: 'utf-8',
    MEDREF_URL: origin,
    MEDREF_KEY: key,
  };
}
