// Readers that read endlessly through a real API, and check that each response is complete and from one version.
// They compare texts, so that they need little time themselves.

import { setTimeout as sleep } from 'node:timers/promises';
import type { ApiAnswer, TestApi } from '../support/api.ts';
import { generationIn, generationsIn, type Subject } from './generations.ts';

/** Responses other than 200 that are allowed. */
export interface Tolerance {
  /** 503 with `Retry-After`: nothing is published yet, or Redis is unavailable. */
  unavailable: boolean;
}

export interface Readers {
  readonly tolerance: Tolerance;
  /** The generation of each version that was seen. */
  readonly versions: ReadonlyMap<number, number>;
  /** How many responses had 200 and 503 so far, and the longest response time. */
  readonly counts: { ok: number; unavailable: number; slowestMs: number };
  /** Waits for so many more responses with any status; resolves early after a fault. */
  more(responses: number): Promise<void>;
  /** Waits until a response came from a generation; resolves early after a fault. */
  seen(generation: number): Promise<void>;
  /** Stops the readers. @throws Error with every fault that they found */
  stop(): Promise<void>;
}

const maxFaults = 10;

/** How long a reader waits after each response, in ms: the import needs the processors, too. */
export const pauses = { suite: 40, proof: 5 };

/** After how many pages of a walk a reader checks the live version. */
const pagesBetweenLooks = 10;

/** How many readers read at the same time. */
const readers = 2;

/** How many lists of changes are kept as texts. */
const maxChangeTexts = 8;

/** Starts readers of a subject; the caller calls `stop`. */
export function startReaders(
  api: TestApi,
  subject: Subject,
  tolerance: Tolerance = { unavailable: false },
  pauseMs = pauses.proof,
): Readers {
  const { perPage, size } = subject;
  const changeTexts = new Map<string, string>();
  const path = `/${subject.collection.name}`;
  const versions = new Map<number, number>();
  const counts = { ok: 0, unavailable: 0, slowestMs: 0 };
  const faults: string[] = [];
  let stopped = false;

  class Fault extends Error {}

  /** Records the generation of a version. @throws Fault if the version had another generation before */
  function note(version: number, generation: number): void {
    const known = versions.get(version);
    if (known !== undefined && known !== generation)
      throw new Fault(`version ${version} was of generation ${known} and then of ${generation}`);
    versions.set(version, generation);
  }

  /** Reads one response; returns `null` for an allowed 503. */
  async function get(address: string): Promise<{ version: number; response: ApiAnswer } | null> {
    const start = performance.now();
    const encoding = (counts.ok + counts.unavailable) % 2 === 0 ? 'gzip' : 'identity';
    const response = await api.get(address, { headers: { 'accept-encoding': encoding } });
    counts.slowestMs = Math.max(counts.slowestMs, performance.now() - start);
    await sleep(pauseMs);
    if (response.status === 503 && tolerance.unavailable) {
      if (!/^\d+$/.test(response.headers.get('retry-after') ?? ''))
        throw new Fault('503 without Retry-After');
      counts.unavailable += 1;
      return null;
    }
    if (response.status !== 200) throw new Fault(`${address}: ${response.status} ${response.text}`);
    counts.ok += 1;
    return { version: Number(response.headers.get('medref-version')), response };
  }

  /** Reads a page, and checks that it is exactly one of the generation that it names. @returns its version and generation */
  async function page(number: number, pin?: number): Promise<{ version: number; generation: number } | null> {
    const address = `${path}?${pin ? `version=${pin}&` : ''}page=${number}&per-page=${perPage}`;
    const got = await get(address);
    if (!got) return null;
    const { text } = got.response;
    const generation = generationIn(text);
    if (generation === undefined) throw new Fault(`${address}: of no generation`);
    const expected = subject.texts(generation).slice((number - 1) * perPage, number * perPage);
    if (!text.startsWith(`{"data":[${expected.join(',')}],"_links":{`))
      throw new Fault(`${address}: not a page of generation ${generation}, but of ${generationsIn(text)}`);
    if (pin !== undefined && got.version !== pin) throw new Fault(`${address}: from version ${got.version}`);
    note(got.version, generation);
    return { version: got.version, generation };
  }

  const lastPage = Math.ceil(size / perPage);

  let last = 0;

  /** Reads the live version, and checks that it is not older than the live version before. */
  async function look(): Promise<void> {
    const before = last;
    const known = await page(1);
    if (known && known.version < before)
      throw new Fault(`version ${before} was live, and then ${known.version}`);
    last = Math.max(last, known?.version ?? 0);
  }

  /** Reads all pages of a version. Each is byte for byte a page of one generation, and all are of the same generation. */
  async function walk(): Promise<void> {
    const first = await page(1);
    if (!first) return;
    for (let number = 2; number <= lastPage && !stopped; number++) {
      if (number % pagesBetweenLooks === 0) await look();
      const next = await page(number, first.version);
      if (!next) return;
      if (next.generation !== first.generation)
        throw new Fault(`the walk of version ${first.version} met generation ${next.generation}`);
    }
  }

  async function record(): Promise<void> {
    const got = await get(`${path}/${subject.anId}`);
    if (!got) return;
    const generation = generationIn(got.response.text) as number;
    if (got.response.text !== `{"data":${subject.list(generation).get(subject.anId)},"success":true}`)
      throw new Fault(`record ${subject.anId} of version ${got.version} is not of generation ${generation}`);
    note(got.version, generation);
  }

  async function changes(): Promise<void> {
    const [since, before] = [...versions][Math.floor(Math.random() * versions.size)] ?? [];
    if (since === undefined || before === undefined) return;
    const got = await get(`${path}/changes?since=${since}&per-page=200`);
    if (!got) return;
    const after = versions.get(got.version) ?? generationIn(got.response.text) ?? before;
    if (!got.response.text.startsWith(`{"data":[${changesText(before, after)}],"_links":{`))
      throw new Fault(`changes from version ${since} (${before}) to ${got.version} (${after}) are not exact`);
  }

  /** Returns the first 200 changes between two generations. */
  function changesText(before: number, after: number): string {
    const name = `${before} ${after}`;
    const known = changeTexts.get(name);
    if (known !== undefined) return known;
    const text = expectedChanges(subject.list(before), subject.list(after)).slice(0, 200).join(',');
    changeTexts.set(name, text);
    if (changeTexts.size > maxChangeTexts) changeTexts.delete([...changeTexts.keys()][0] as string);
    return text;
  }

  const reads = [() => page(1 + Math.floor(Math.random() * lastPage)), walk, record, changes];

  async function read(): Promise<void> {
    while (!stopped) {
      await look();
      await (reads[Math.floor(Math.random() * reads.length)] as (typeof reads)[number])();
    }
  }

  const all = Array.from({ length: readers }, async () => {
    while (!stopped) {
      await read().catch((error: Error) => {
        faults.push(error instanceof Fault ? error.message : `${error.stack}`);
        if (faults.length >= maxFaults) stopped = true;
      });
    }
  });

  return {
    tolerance,
    versions,
    counts,
    async more(responses) {
      const target = counts.ok + counts.unavailable + responses;
      while (faults.length === 0 && counts.ok + counts.unavailable < target) await sleep(2);
    },
    async seen(generation) {
      while (faults.length === 0 && ![...versions.values()].includes(generation)) await sleep(2);
    },
    async stop() {
      stopped = true;
      await Promise.all(all);
      if (faults.length > 0) throw new Error(`Readers found: ${faults.join('; ')}`);
    },
  };
}

/** Returns the elements of a change feed between two lists, as JSON texts. */
function expectedChanges(before: ReadonlyMap<number, string>, after: ReadonlyMap<number, string>): string[] {
  const ids = [...new Set([...before.keys(), ...after.keys()])].sort((a, b) => a - b);
  return ids.flatMap((id) => {
    const [old, now] = [before.get(id), after.get(id)];
    if (old === now) return [];
    if (now === undefined) return [`{"id":${id},"change":"removed"}`];
    return [`{"id":${id},"change":"${old === undefined ? 'added' : 'changed'}","record":${now}}`];
  });
}
