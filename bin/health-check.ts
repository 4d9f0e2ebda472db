#!/usr/bin/env node
// The health check of a container: whether the API is ready, or when the schedule last did something. Exit code 0 or 1, and
// one line that says why. "health-check.js [serve|schedule]"; without a word, the schedule where it has left a heartbeat.

import { readSettings, type Settings } from '../config/settings.ts';
import { heartbeatFile, readHeartbeat } from './heartbeat.ts';

/** A schedule that has not written its heartbeat for this long hangs, or is gone, in ms. */
const silentMs = 60_000;

/** How long the API is waited for, in ms. It answers within 2 s. */
const answerMs = 4_000;

interface Health {
  readonly isGood: boolean;
  readonly sentence: string;
}

async function check(command: string | undefined): Promise<Health> {
  const settings = readSettings(process.env);
  const file = heartbeatFile(settings.keyPrefix);
  const isSchedule = command === undefined ? (await readHeartbeat(file)) !== null : command === 'schedule';
  return isSchedule ? scheduleHealth(file) : apiHealth(settings);
}

async function scheduleHealth(file: string): Promise<Health> {
  const beat = await readHeartbeat(file);
  if (!beat)
    return { isGood: false, sentence: `The schedule does not run: there is no heartbeat at ${file}.` };
  const ageMs = Date.now() - Date.parse(beat.at);
  const what = `it last did something at ${beat.didAt}: ${beat.did}.`;
  return ageMs <= silentMs
    ? { isGood: true, sentence: `The schedule runs; ${what}` }
    : {
        isGood: false,
        sentence: `The schedule hangs, or is gone: it has been silent for ${Math.round(ageMs / 1000)} s; ${what}`,
      };
}

async function apiHealth({ apiHost, apiPort }: Settings): Promise<Health> {
  const address = `http://${reachable(apiHost)}:${apiPort}/health/ready`;
  try {
    const answer = await fetch(address, { signal: AbortSignal.timeout(answerMs) });
    const body = (await answer.json()) as { data: { message?: string; versions?: object } };
    return {
      isGood: answer.ok,
      sentence: body.data.message ?? `Ready: ${JSON.stringify(body.data.versions)}`,
    };
  } catch (error) {
    const { message, cause } = error as Error;
    return {
      isGood: false,
      sentence: `${address} does not answer: ${(cause as Error)?.message ?? message}.`,
    };
  }
}

/** An address by which one that is listened on can be asked. */
function reachable(host: string): string {
  if (host === '0.0.0.0') return '127.0.0.1';
  if (host === '::') return '[::1]';
  return host.includes(':') ? `[${host}]` : host;
}

const { isGood, sentence } = await check(process.argv[2]).catch(({ message }: Error) => ({
  ...{ isGood: false, sentence: message },
}));
process.stdout.write(`${sentence}\n`);
process.exitCode = isGood ? 0 : 1;
