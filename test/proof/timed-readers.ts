// Readers that page through a large list without pause, by a real API. Each answer must be, byte for byte, what its
// version has. Out: how long each read took and when, and what was wrong.

import { setImmediate as nextTurn, setTimeout as sleep } from 'node:timers/promises';
import type { TestApi } from '../support/api.ts';
import type { LargeList } from './large-list.ts';

export interface TimedReaders {
  /** Answers that were wrong, or were none. */
  readonly faults: readonly string[];
  /** How many reads have ended in a time, by `performance.now()`, and how long the longest one took that was under way in it, in ms. */
  between(from: number, to: number): { reads: number; longestMs: number };
  /** When the first answer came from a version. Waits for it. */
  seen(version: number): Promise<number>;
  stop(): Promise<void>;
}

/** What they read. */
export interface TimedReading {
  readonly list: LargeList;
  /** Which generation each version has. */
  readonly generationOf: (version: number) => number | undefined;
}

const perPage = 200;
const pagesInARow = 20;
const concurrency = 2;
const maxFaults = 10;

/** Starts readers; whoever calls this calls `stop`. */
export function startTimedReaders(api: TestApi, { list, generationOf }: TimedReading): TimedReaders {
  const starts: number[] = [];
  const durations: number[] = [];
  const faults: string[] = [];
  const firstAnswers = new Map<number, number>();
  let stopped = false;

  /** Reads a page and judges it. @returns its version */
  async function readPage(number: number, pin: number | null): Promise<number> {
    const path = `/products?${pin === null ? '' : `version=${pin}&`}page=${number}&per-page=${perPage}`;
    const start = performance.now();
    const { status, headers, text } = await api.get(path);
    const end = performance.now();
    starts.push(start);
    durations.push(end - start);
    const version = Number(headers.get('medref-version'));
    const generation = generationOf(version);
    if (status !== 200 || generation === undefined)
      throw new Error(`${path}: ${status} ${text.slice(0, 200)}`);
    if (pin !== null && version !== pin) throw new Error(`${path}: from version ${version}`);
    if (!firstAnswers.has(version)) firstAnswers.set(version, end);
    const expected = list.texts(generation, (number - 1) * perPage, perPage);
    if (!text.startsWith(`{"data":[${expected.join(',')}],`))
      throw new Error(`${path}: not what version ${version} has`);
    return version;
  }

  /** Some pages in a row from a random one on, the first of what is live and the others of the same version. */
  async function walk(): Promise<void> {
    const pages = Math.ceil(list.size / perPage);
    const first = 1 + Math.floor(Math.random() * pages);
    const version = await readPage(first, null);
    for (let number = first + 1; number < first + pagesInARow && number <= pages && !stopped; number++) {
      await readPage(number, version);
      await nextTurn();
    }
  }

  const all = Array.from({ length: concurrency }, async () => {
    while (!stopped) {
      await walk().catch((error: Error) => {
        faults.push(error.message);
        stopped ||= faults.length >= maxFaults;
      });
    }
  });

  return {
    faults,
    between(from, to) {
      let reads = 0;
      let longestMs = 0;
      for (const [i, start] of starts.entries()) {
        const end = start + (durations[i] as number);
        if (end < from || start > to) continue;
        reads += 1;
        longestMs = Math.max(longestMs, durations[i] as number);
      }
      return { reads, longestMs };
    },
    async seen(version) {
      while (!firstAnswers.has(version) && !stopped) await sleep(5);
      return firstAnswers.get(version) ?? Number.NaN;
    },
    async stop() {
      stopped = true;
      await Promise.all(all);
    },
  };
}
