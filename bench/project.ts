// Where things are: the project, from its sources as from their build, and the real list beside it.

import { existsSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

/** The project's folder. */
export const project = projectFolder(dirname(fileURLToPath(import.meta.url)));

/** The real list of products, which lies beside the project and is read from there. */
export const realProducts = join(project, '..', 'shared', 'data', 'products.json.gz');

/** A program as the build left it, such as `bench/peers/plain.js`. */
export function builtProgram(path: string): string {
  return join(project, 'dist', path);
}

function projectFolder(from: string): string {
  return existsSync(join(from, 'package.json')) ? from : projectFolder(dirname(from));
}
