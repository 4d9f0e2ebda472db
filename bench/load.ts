// Puts load on a server with wrk. Returns successful requests per second and their CPU time.

import { spawnSync } from 'node:child_process';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { cpuMicros } from './process-usage.ts';
import { project } from './project.ts';
import type { Workspace } from './workspace.ts';

/** One request: GET, with header fields. */
export interface LoadRequest {
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
}

/** A server and its requests, which are sent in turn, so that caching a single response does not help. */
export interface LoadTarget {
  readonly origin: string;
  readonly requests: readonly LoadRequest[];
  /** The server's process; its child processes count, too. */
  readonly serverPid: number;
  /** The process of its database. */
  readonly storePid: number | null;
}

export interface LoadSample {
  readonly requestsPerSecond: number;
  /** CPU µs of a request. */
  readonly serverMicros: number;
  readonly storeMicros: number | null;
}

/** How long each server is measured, in whole seconds as wrk requires. */
export interface LoadTimes {
  readonly warmUpSeconds: number;
  readonly seconds: number;
}

/** The number of connections; one thread, since the server needs the other core. */
export const connections = 32;

/** Returns whether wrk is on the PATH. */
export function wrkIsThere(): boolean {
  return spawnSync('wrk', ['-v']).error === undefined;
}

/** Makes a function that puts load on a target once. */
export async function loadOn(
  workspace: Workspace,
  target: LoadTarget,
  { warmUpSeconds, seconds }: LoadTimes,
): Promise<() => Promise<LoadSample>> {
  const file = workspace.path('requests');
  await writeFile(file, target.requests.map(requestLine).join(''));
  // Each run continues near the end of the previous one.
  let offset = 0;
  const runFor = async (duration: number) => {
    const run = await runWrk(workspace, { origin: target.origin, file, duration, offset });
    offset += run.requests;
    return run;
  };
  return async () => {
    if (warmUpSeconds > 0) await runFor(warmUpSeconds);
    const before = cpuOf(target);
    const { requests, micros } = await runFor(seconds);
    const after = cpuOf(target);
    return {
      requestsPerSecond: requests / (micros / 1e6),
      serverMicros: (after.server - before.server) / requests,
      storeMicros: target.storePid === null ? null : (after.store - before.store) / requests,
    };
  };
}

function requestLine({ path, headers }: LoadRequest): string {
  return `${[path, ...Object.entries(headers).map(([name, value]) => `${name}: ${value}`)].join('\t')}\n`;
}

function cpuOf({ serverPid, storePid }: LoadTarget) {
  return { server: cpuMicros(serverPid) ?? 0, store: (storePid && cpuMicros(storePid)) ?? 0 };
}

/** The output of the wrk script. */
interface WrkRun {
  readonly requests: number;
  readonly micros: number;
  /** Responses with a status of 400 or more. */
  readonly refused: number;
  /** Connections that failed. */
  readonly broken: number;
  readonly late: number;
}

async function runWrk(
  workspace: Workspace,
  { origin, file, duration, offset }: { origin: string; file: string; duration: number; offset: number },
): Promise<WrkRun> {
  const script = join(project, 'bench', 'load.lua');
  const load = ['-t', '1', '-c', String(connections), '-d', `${duration}s`, '--timeout', '10s'];
  const stdout = await workspace.run('wrk', [...load, '-s', script, origin, '--', file, String(offset)]);
  const line = stdout.split('\n').find((text) => text.startsWith('{"requests":'));
  if (line === undefined) throw new Error(`Unexpected output of wrk: ${stdout}`);
  const run = JSON.parse(line) as WrkRun;
  const { requests, refused, broken, late } = run;
  if (requests === 0 || refused + broken + late > 0) {
    throw new Error(
      `of ${requests} responses ${refused} had a status of 400 or more, ${broken} connections broke, ${late} requests timed out`,
    );
  }
  return run;
}
