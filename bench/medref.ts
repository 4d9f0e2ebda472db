// medref as a black box: a Redis, an import, a key and an API, started from the built command line.

import { join } from 'node:path';
import type { Child } from '../demo/child.ts';
import type { Fsync } from '../demo/private-redis.ts';
import { nodeOptions, project } from './project.ts';
import type { Ready, Workspace } from './workspace.ts';

const entry = join(project, 'dist', 'bin', 'medref.js');

/** The report of one import by `medref import --json`. */
export interface ImportReport {
  readonly outcome: string;
  readonly read: number;
  readonly rejected: number;
  readonly durationMs: number;
  readonly reason: string | null;
}

/** A medref that serves a list. */
export interface Service {
  readonly origin: string;
  readonly key: string;
  /** A key with a rate that it never reaches. */
  readonly ratedKey: string;
  readonly pid: number;
  readonly redisPid: number;
  readonly redisUrl: string;
  stop(): Promise<void>;
}

/** Starts a forced import of products from a file. */
export async function startImport(
  workspace: Workspace,
  redisUrl: string,
  file: string,
): Promise<{ readonly child: Child; readonly report: Promise<ImportReport> }> {
  const child = await workspace.start(
    process.execPath,
    [...nodeOptions, entry, 'import', 'products', '--force', '--json'],
    {
      env: environment(redisUrl, { PRODUCTS_URL: `file://${file}` }),
    },
  );
  return { child, report: child.ended.then(() => readReport(child)) };
}

/** Starts Redis, imports a list, creates a key and serves. @param settings of the API */
export async function startService(
  workspace: Workspace,
  file: string,
  { fsync, settings = {} }: { fsync?: Fsync; settings?: Record<string, string> } = {},
): Promise<Service> {
  const redis = await workspace.startRedis(fsync);
  await (await startImport(workspace, redis.url, file)).report;
  const createKey = async (...options: string[]) => {
    const args = [entry, 'keys', 'create', '--client', 'bench', '--json', ...options];
    const created = await workspace.run(process.execPath, args, { env: environment(redis.url) });
    return (JSON.parse(created) as { key: string }).key;
  };
  const key = await createKey();
  const ratedKey = await createKey('--rate', '1000000/s');
  const api: Child & Ready = await workspace.startServer(
    process.execPath,
    [...nodeOptions, entry, 'serve', '--json'],
    {
      env: environment(redis.url, settings),
    },
  );
  return {
    origin: api.address,
    key,
    ratedKey,
    pid: api.pid,
    redisPid: redis.pid,
    redisUrl: redis.url,
    async stop() {
      await api.stop();
      await redis.stop();
    },
  };
}

function readReport({ output }: Child): ImportReport {
  if (output.stdout.trim() === '') throw new Error(`medref import failed: ${output.stderr.trim()}`);
  const [report] = (JSON.parse(output.stdout) as { imports: ImportReport[] }).imports;
  if (report?.outcome === 'published') return report;
  throw new Error(`medref import: ${report?.outcome}, ${report?.reason}`);
}

function environment(redisUrl: string, more: Record<string, string> = {}): NodeJS.ProcessEnv {
  // Port 0 takes a free port.
  const ports = { API_PORT: '0', ADMIN_PORT: '0' };
  return { PATH: process.env['PATH'], REDIS_URL: redisUrl, LOG_LEVEL: 'warn', ...ports, ...more };
}
