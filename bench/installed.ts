// Finds programs on the PATH.

import { accessSync, constants } from 'node:fs';
import { delimiter, join } from 'node:path';

/** Many systems have servers here, on the PATH of root only. */
const alsoHere = ['/usr/sbin', '/usr/local/sbin'];

/** Returns the path of an executable, or `undefined`. */
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
