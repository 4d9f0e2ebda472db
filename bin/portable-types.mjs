// Makes emitted types readable for every TypeScript from 4.9 on: `./lists.ts` becomes `./lists.js`. Argument: their folder.

import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

const [folder] = process.argv.slice(2);
for (const file of readdirSync(folder).filter((it) => it.endsWith('.d.ts'))) {
  const path = join(folder, file);
  writeFileSync(path, readFileSync(path, 'utf8').replaceAll(".ts';", ".js';"));
}
