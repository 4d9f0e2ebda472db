// Reads the examples of a documentation page with the output that it shows, and runs them as a reader would.

import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { writeFile } from 'node:fs/promises';
import { delimiter, dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

const root = new URL('../../', import.meta.url);

/** The languages of examples; other fenced blocks show output. */
const languages = ['sh', 'js', 'python'] as const;

export type Language = (typeof languages)[number];

/** The output of an example on a page: text, or JSON with any white space between its parts. */
export interface ShownOutput {
  readonly format: 'json' | 'text';
  readonly text: string;
}

export interface Example {
  /** `docs/CONSUMERS.md` */
  readonly page: string;
  /** The line of the page where the code begins. */
  readonly line: number;
  /** The heading above it. */
  readonly heading: string;
  readonly language: Language;
  readonly code: string;
  /** The file that its first line names; `null` if it names none. */
  readonly file: string | null;
  /** The output on the page; an example without one prints nothing. */
  readonly output: ShownOutput;
}

/** Reads the text of a page. */
export function readPage(page: string): string {
  return readFileSync(fileURLToPath(new URL(page, root)), 'utf8');
}

/** Returns the examples of a page in their order. @throws Error if a fenced block is not allowed or not in the right place */
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
      // With prose between them, it would be unclear to which example the output belongs.
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

/** Returns lines with commands that a reader would run but that are not in an example. */
export function strayCommands(text: string): string[] {
  const prose = text.replace(/^```.*?^```$/gms, '');
  return prose.split('\n').filter((line) => /^\s*(?:\$ )?(?:curl|node|python3) /.test(line));
}

/** Returns whether an example printed the output of the page; `…` on the page matches any text, as short as possible. */
export function isAsShown(printed: string, { format, text }: ShownOutput): boolean {
  const plain = format === 'json' ? withoutSpace : (it: string) => it.trimEnd();
  const pattern = plain(text).split('…').map(escaped).join('.*?');
  return new RegExp(`^${pattern}$`, 's').test(plain(printed));
}

/** Returns JSON without white space between its parts. */
function withoutSpace(text: string): string {
  return text.replace(/("(?:[^"\\]|\\.)*")|\s+/g, '$1');
}

function escaped(text: string): string {
  return text.replace(/[.*+?^${}()|[\]\\]/g, '\\$&');
}

/** The service that an example calls. */
export interface AskedService {
  readonly origin: string;
  readonly key: string;
}

export interface ExampleResult {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

/** The longest time that an example may run, in ms. */
const patienceMs = 30_000;

/** How a file of each language is run. */
const runs = {
  sh: { program: 'sh', ending: 'sh' },
  js: { program: process.execPath, ending: 'mjs' },
  python: { program: 'python3', ending: 'py' },
} as const;

/** Programs that examples need and the project does not install, with arguments that fail if a program is missing. */
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

/** Returns the program that an example needs and this machine lacks; `undefined`: the example can run. */
export function missingProgram({ language, code }: Example): string | undefined {
  const needed = language === 'python' ? 'python3 ' : language === 'sh' ? code : '';
  return missing.find((program) => needed.includes(`${program} `));
}

/** Writes an example to a file in a folder, under the name in its first line, and runs it there until it ends. */
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

/** Returns an environment with only the machine's programs and the service; `node` is the one that runs the tests. */
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
