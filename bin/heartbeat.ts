// A file that a schedule writes anew while it lives, with what it last did: it listens on no port that could be asked.

import { randomUUID } from 'node:crypto';
import { readFile, rename, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/** How often it is written, in ms. */
const usuallyEveryMs = 10_000;

/** What the file says. */
export interface Heartbeat {
  /** When it was written, ISO 8601. */
  readonly at: string;
  /** What was done last, as the end of a sentence, and when that was. */
  readonly did: string;
  readonly didAt: string;
}

/** A heartbeat that goes on. */
export interface Beating {
  /** Notes what was done last, such as "waits for Redis". */
  note(did: string): void;
  /** Ends it, and removes the file. */
  stop(): Promise<void>;
}

/** The file of the schedule for a key prefix, among the temporary ones. */
export function heartbeatFile(keyPrefix: string): string {
  return join(tmpdir(), `medref-schedule-${keyPrefix}.json`);
}

/**
 * Writes a heartbeat until it is stopped. Tests write it more often.
 * @param onFailure told once why it cannot be written, which hinders nothing else
 */
export function startHeartbeat(
  file: string,
  { onFailure, everyMs = usuallyEveryMs }: { onFailure: (error: Error) => void; everyMs?: number },
): Beating {
  let last = { did: 'started', didAt: new Date().toISOString() };
  let hasFailed = false;
  let writing = Promise.resolve();
  const beat = () => {
    writing = writing
      .then(() => replaceFile(file, JSON.stringify({ at: new Date().toISOString(), ...last })))
      .catch((error: Error) => {
        if (!hasFailed) onFailure(error);
        hasFailed = true;
      });
  };
  beat();
  const timer = setInterval(beat, everyMs).unref();
  return {
    note: (did) => {
      last = { did, didAt: new Date().toISOString() };
      beat();
    },
    stop: async () => {
      clearInterval(timer);
      await writing;
      await rm(file, { force: true }).catch(() => undefined);
    },
  };
}

/** The heartbeat in a file; `null` where there is none. */
export async function readHeartbeat(file: string): Promise<Heartbeat | null> {
  try {
    return JSON.parse(await readFile(file, 'utf8')) as Heartbeat;
  } catch {
    return null;
  }
}

/** In one step, and never through a link that somebody has put in its place: the folder may be everybody's. */
async function replaceFile(file: string, text: string): Promise<void> {
  const made = `${file}.${randomUUID()}`;
  await writeFile(made, text, { flag: 'wx', mode: 0o600 });
  await rename(made, file);
}
