// medref as a black box: its built command line, run with settings of the bench's own and no others.

import { join } from 'node:path';
import type { Child } from '../demo/child.ts';
import { project } from './project.ts';
import type { Ready, Workspace } from './workspace.ts';

const entry = join(project, 'dist', 'bin', 'medref.js');

/** Which Redis, and which part of it. */
export interface Store {
  readonly redisUrl: string;
  readonly keyPrefix: string;
}

/** What `medref import --json` says of one import, as far as it matters here. */
export interface ImportReport {
  readonly outcome: string;
  readonly version: number | null;
  readonly read: number;
  readonly rejected: number;
  readonly durationMs: number;
  readonly reason: string | null;
}

/** An import of products from a file that runs, and its report when it is through. */
export interface RunningImport {
  readonly child: Child;
  readonly report: Promise<ImportReport>;
}

/** Starts an import of products from a file. */
export async function startImport(workspace: Workspace, store: Store, file: string): Promise<RunningImport> {
  const child = await workspace.start(process.execPath, [entry, 'import', 'products', '--force', '--json'], {
    env: environment(store, { PRODUCTS_URL: `file://${file}` }),
  });
  return { child, report: child.ended.then(() => readReport(child)) };
}

/** Imports products from a file, and rejects unless they are published. */
export async function importProducts(
  workspace: Workspace,
  store: Store,
  file: string,
): Promise<ImportReport> {
  const { report } = await startImport(workspace, store, file);
  return report;
}

/** Makes a key. @param rate such as `10/s`; none unless it is given */
export async function createKey(workspace: Workspace, store: Store, rate?: string): Promise<string> {
  const args = [entry, 'keys', 'create', '--client', 'bench', '--json', ...(rate ? ['--rate', rate] : [])];
  const stdout = await workspace.run(process.execPath, args, { env: environment(store) });
  return (JSON.parse(stdout) as { key: string }).key;
}

/** Starts an API on a free port. */
export function serve(
  workspace: Workspace,
  store: Store,
  settings: Record<string, string> = {},
): Promise<Child & Ready> {
  const env = environment(store, settings);
  return workspace.startServer(process.execPath, [entry, 'serve', '--json'], { env });
}

function readReport({ output }: Child): ImportReport {
  if (output.stdout.trim() === '') throw new Error(`medref import failed: ${output.stderr.trim()}`);
  const { imports } = JSON.parse(output.stdout) as { imports: ImportReport[] };
  const [report] = imports;
  if (report?.outcome !== 'published')
    throw new Error(`medref import: ${report?.outcome}, ${report?.reason}`);
  return report;
}

function environment(store: Store, more: Record<string, string> = {}): NodeJS.ProcessEnv {
  return {
    PATH: process.env['PATH'],
    REDIS_URL: store.redisUrl,
    KEY_PREFIX: store.keyPrefix,
    // A port of 0 is one that the system has free.
    API_PORT: '0',
    ADMIN_PORT: '0',
    LOG_LEVEL: 'warn',
    ...more,
  };
}
