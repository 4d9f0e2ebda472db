// In: the list. Out: json-server, as its users start it, with the list's records; its pages are ?_page=N&_limit=200.

import { writeFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import type { Child } from '../../demo/child.ts';
import { freePort, whenItAnswers } from '../ports.ts';
import type { Ready, Workspace } from '../workspace.ts';

/** Starts it on a free port. */
export async function startJsonServer(workspace: Workspace, list: string): Promise<Child & Ready> {
  const program = createRequire(import.meta.url).resolve('json-server/lib/cli/bin.js');
  const port = await freePort();
  // A script that gives the data: the list is read where it is, and no copy of it is written.
  const data = workspace.path('data.js');
  await writeFile(
    data,
    `const { readFileSync } = require('node:fs');
     const { gunzipSync } = require('node:zlib');
     module.exports = () => ({ products: JSON.parse(gunzipSync(readFileSync(${JSON.stringify(list)}))).data });`,
  );
  const args = [program, data, '--host', '127.0.0.1', '--port', String(port), '--quiet'];
  const child = await workspace.start(process.execPath, args);
  const address = `http://127.0.0.1:${port}`;
  await whenItAnswers(child, address);
  return { ...child, address };
}
