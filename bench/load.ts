// In: requests to send in turn, and to whom. Out: requests/s that were answered well, and the CPU time they took.

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

/** Who is asked, and what: the requests are sent in turn, so that no cache of a single answer helps anyone. */
export interface LoadTarget {
  readonly origin: string;
  readonly requests: readonly LoadRequest[];
  /** The server's process; those that it started count as its own. */
  readonly serverPid: number;
  /** The process of what it stores its data in. */
  readonly storePid: number | null;
}

export interface LoadSample {
  readonly requestsPerSecond: number;
  /** CPU µs of a request. */
  readonly serverMicros: number;
  readonly storeMicros: number | null;
}

/** How long each contender is asked, in whole seconds; wrk knows no others. */
export interface LoadTimes {
  readonly warmUpSeconds: number;
  readonly seconds: number;
}

/** As many as the figures of the design were taken with; one thread, since one core is for the server. */
export const connections = 32;

/** Whether there is a wrk on the PATH. */
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
  // Each run begins where the one before ended, or near it.
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

/** What the script of the bench prints at the end. */
interface WrkRun {
  readonly requests: number;
  readonly micros: number;
  /** Answers with a status of 400 or more. */
  readonly refused: number;
  /** Connections that could not be made, read or written. */
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
  if (line === undefined) throw new Error(`wrk said nothing that is understood: ${stdout}`);
  const run = JSON.parse(line) as WrkRun;
  const { requests, refused, broken, late } = run;
  if (requests === 0 || refused + broken + late > 0) {
    throw new Error(
      `of ${requests} answers ${refused} had a status of 400 or more, ${broken} connections broke, ${late} requests were not answered in time`,
    );
  }
  return run;
}
