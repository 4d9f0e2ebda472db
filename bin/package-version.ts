// The version of medref.

import { readFileSync } from 'node:fs';

/** Returns the version in package.json, which is in the parent folder of this file or of dist/. */
export function packageVersion(): string {
  for (const path of ['../package.json', '../../package.json']) {
    try {
      const { version } = JSON.parse(readFileSync(new URL(path, import.meta.url), 'utf8'));
      return String(version);
    } catch {
      // Try the next folder up.
    }
  }
  return 'unknown';
}
