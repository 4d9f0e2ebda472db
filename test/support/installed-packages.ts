// A folder in which a consumer has installed the packages medref and medref-client, and databases for the examples.

import { mkdir, symlink } from 'node:fs/promises';
import { join } from 'node:path';
import { root } from './project-files.ts';

/** Makes `node_modules` with both packages, as links to the build of the tests. */
export async function installPackages(folder: string): Promise<void> {
  const modules = join(folder, 'node_modules');
  await mkdir(join(modules, 'medref-client'), { recursive: true });
  await symlink(root, join(modules, 'medref'));
  for (const name of ['pg', 'sql.js']) await symlink(join(root, 'node_modules', name), join(modules, name));
  await symlink(join(root, 'client/package.json'), join(modules, 'medref-client/package.json'));
  await symlink(join(root, 'dist/client'), join(modules, 'medref-client/dist'));
  await symlink(join(root, 'examples'), join(modules, 'medref-client/examples'));
}
