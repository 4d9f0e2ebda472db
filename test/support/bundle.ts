// In: a program of the project. Out: the same as one file of JavaScript with all that it imports, which starts with less than half
// of the CPU: for tests that start it often. What is built, dist/, starts in test/bin/processes.test.ts.

import { mkdtempSync, rmSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { build, type Plugin, stop } from 'esbuild';

const project = fileURLToPath(new URL('../..', import.meta.url));

/** A module that reads files beside itself finds them where it lies, wherever the bundle lies. */
const placesOfModules: Plugin = {
  name: 'places of modules',
  setup({ onLoad }) {
    onLoad({ filter: /\.ts$/ }, async ({ path }) => {
      const text = await readFile(path, 'utf8');
      const place = JSON.stringify(pathToFileURL(path).href);
      return { contents: text.replaceAll('import.meta.url', place), loader: 'ts' };
    });
  },
};

const bundles = new Map<string, Promise<string>>();

/**
 * Bundles a program, once in a process of tests.
 * @param program its path within the project, such as `bin/medref.ts`
 * @returns the path of the bundle, which is gone when this process ends
 */
export function bundled(program: string): Promise<string> {
  const known = bundles.get(program);
  if (known) return known;
  const made = bundle(program);
  bundles.set(program, made);
  return made;
}

async function bundle(program: string): Promise<string> {
  const outdir = mkdtempSync(join(tmpdir(), 'medref-test-bundle-'));
  process.once('exit', () => rmSync(outdir, { recursive: true, force: true }));
  await build({
    ...{ entryPoints: [join(project, program)], outdir, outExtension: { '.js': '.mjs' } },
    // Split, so that a command loads what it imports as it runs, and nothing else.
    ...{ bundle: true, splitting: true, format: 'esm', platform: 'node', target: 'node20' },
    ...{ plugins: [placesOfModules], logLevel: 'error' },
    // What packages require of Node, which a module does not have by itself.
    banner: {
      js: "import { createRequire as requireFrom } from 'node:module'; const require = requireFrom(import.meta.url);",
    },
  });
  await stop();
  return join(outdir, `${basename(program, '.ts')}.mjs`);
}
