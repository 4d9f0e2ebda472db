// In: the name of a program. Out: where it is, if it is installed.

import { accessSync, constants } from 'node:fs';
import { delimiter, join } from 'node:path';

/** Servers are here on many systems, for root's PATH alone. */
const alsoHere = ['/usr/sbin', '/usr/local/sbin'];

/** The path of an executable, or undefined. */
export function onPath(program: string): string | undefined {
  const folders = [...(process.env['PATH'] ?? '').split(delimiter).filter(Boolean), ...alsoHere];
  return folders.map((folder) => join(folder, program)).find(isExecutable);
}

function isExecutable(path: string): boolean {
  try {
    accessSync(path, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}
