// Paths of the project, from its sources or from its build, and of the real list.

import { existsSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

/** The project's folder. */
export const project = projectFolder(dirname(fileURLToPath(import.meta.url)));

/** The real list of products in ../shared/data; it is never copied into the project. */
export const realProducts = join(project, '..', 'shared', 'data', 'products.json.gz');

/** Returns the path of a built program, such as `bench/peers/plain.js`. */
export function builtProgram(path: string): string {
  return join(project, 'dist', path);
}

function projectFolder(from: string): string {
  return existsSync(join(from, 'package.json')) ? from : projectFolder(dirname(from));
}

/** Options of Node for servers and importers: those of the first line of `bin/medref.ts`. */
export const nodeOptions = ['--single-threaded-gc'];
