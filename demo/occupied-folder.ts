// In: a folder. Out: the folder for one demo alone, until it gives it back; a demo that crashed has given it back.

import { mkdir, readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';

/** Makes the folder and takes it; rejects while another demo has it. Returns how to give it back. */
export async function occupyFolder(folder: string): Promise<() => Promise<void>> {
  const note = join(folder, 'running');
  await mkdir(folder, { recursive: true });
  const owner = await readOwner(note);
  if (owner !== undefined && isAlive(owner)) {
    throw new Error(
      `A demo is running already on ${folder} (process ${owner}): use that one, or stop it, or set DEMO_FOLDER to another folder. ` +
        `If that process is no demo, delete ${note}.`,
    );
  }
  await rm(note, { force: true });
  // Fails where another demo came in between.
  await writeFile(note, String(process.pid), { flag: 'wx' });
  return () => rm(note, { force: true });
}

async function readOwner(note: string): Promise<number | undefined> {
  try {
    return Number(await readFile(note, 'utf8'));
  } catch {
    return undefined;
  }
}

function isAlive(pid: number): boolean {
  try {
    return pid > 0 && process.kill(pid, 0);
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EPERM';
  }
}
