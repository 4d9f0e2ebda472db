// In: files that are compressed already. Out: an nginx of one's own that sends them as they are, without keys.

import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Child } from '../../demo/child.ts';
import { ask } from '../answers.ts';
import type { LoadRequest } from '../load.ts';
import { freePort, whenItAnswers } from '../ports.ts';
import type { Ready, Workspace } from '../workspace.ts';

/** Starts it on a folder. */
export async function startNginx(
  workspace: Workspace,
  { program, files }: { program: string; files: string },
): Promise<Child & Ready> {
  const folder = workspace.path('nginx');
  await mkdir(folder);
  const port = await freePort();
  const config = join(folder, 'nginx.conf');
  await writeFile(config, configuration({ folder, files, port }));
  const child = await workspace.start(program, ['-c', config, '-p', folder, '-e', 'stderr']);
  const address = `http://127.0.0.1:${port}`;
  await whenItAnswers(child, address);
  return { ...child, address };
}

/** Writes answers as files, the n-th as products/n.json.gz. @returns their folder */
export async function writePages(
  workspace: Workspace,
  { origin, requests }: { origin: string; requests: readonly LoadRequest[] },
): Promise<string> {
  const files = workspace.path('pages');
  await mkdir(join(files, 'products'), { recursive: true });
  for (const [index, request] of requests.entries()) {
    await writeFile(join(files, 'products', `${index + 1}.json.gz`), (await ask(origin, request)).body);
  }
  return files;
}

function configuration({ folder, files, port }: { folder: string; files: string; port: number }): string {
  const temporary = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi'];
  return `
    ${process.getuid?.() === 0 ? 'user root;' : ''}
    daemon off;
    worker_processes 1;
    error_log stderr error;
    pid ${folder}/pid;
    events { worker_connections 512; }
    http {
      access_log off;
      ${temporary.map((name) => `${name}_temp_path ${folder}/${name};`).join('\n')}
      types { application/json json; }
      sendfile on;
      tcp_nopush on;
      keepalive_requests 1000000000;
      open_file_cache max=1000;
      server {
        listen 127.0.0.1:${port};
        root ${files};
        gzip_static on;
      }
    }`;
}
