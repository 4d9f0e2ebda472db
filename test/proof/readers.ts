// Readers that read without pause through a real API, and judge each answer: it must be of one version, and whole.

import { setImmediate as nextTurn, setTimeout as sleep } from 'node:timers/promises';
import type { ApiAnswer, TestApi } from '../support/api.ts';
import { generationsIn, type Subject } from './generations.ts';

/** When an answer other than 200 is in order. */
export interface Tolerance {
  /** 503 with `Retry-After`: nothing was published yet, or Redis is away. */
  unavailable: boolean;
}

export interface Readers {
  readonly tolerance: Tolerance;
  /** Which generation each version was seen to have. */
  readonly versions: ReadonlyMap<number, number>;
  /** Answers with 200, and with 503, so far. */
  readonly counts: { ok: number; unavailable: number; slowestMs: number };
  /** Waits for so many further answers, of whatever status; less when a fault was found. */
  more(answers: number): Promise<void>;
  /** Waits until an answer came from a generation; less when a fault was found. */
  seen(generation: number): Promise<void>;
  /** Ends them. @throws Error with every fault that they found */
  stop(): Promise<void>;
}

const maxFaults = 10;

/** Starts readers of a subject; whoever calls this calls `stop`. */
export function startReaders(
  api: TestApi,
  subject: Subject,
  tolerance: Tolerance = { unavailable: false },
  concurrency = 2,
): Readers {
  const { perPage } = subject;
  const path = `/${subject.collection.name}`;
  const versions = new Map<number, number>();
  const counts = { ok: 0, unavailable: 0, slowestMs: 0 };
  const faults: string[] = [];
  let stopped = false;

  class Fault extends Error {}

  /** A version and its generation belong together for ever. */
  function note(version: number, generation: number): void {
    const known = versions.get(version);
    if (known !== undefined && known !== generation)
      throw new Fault(`version ${version} was of generation ${known} and then of ${generation}`);
    versions.set(version, generation);
  }

  /** One answer; `null` for a 503 that is in order. */
  async function get(address: string): Promise<{ version: number; answer: ApiAnswer } | null> {
    const start = performance.now();
    const answer = await api.get(address);
    counts.slowestMs = Math.max(counts.slowestMs, performance.now() - start);
    if (answer.status === 503 && tolerance.unavailable) {
      if (!/^\d+$/.test(answer.headers.get('retry-after') ?? '')) throw new Fault('503 without Retry-After');
      counts.unavailable += 1;
      return null;
    }
    if (answer.status !== 200) throw new Fault(`${address}: ${answer.status} ${answer.text}`);
    counts.ok += 1;
    return { version: Number(answer.headers.get('medref-version')), answer };
  }

  /** A page that must be exactly that of the generation whose marks it has. @returns its version and texts */
  async function page(number: number, pin?: number): Promise<{ version: number; texts: string[] } | null> {
    const address = `${path}?${pin ? `version=${pin}&` : ''}page=${number}&per-page=${perPage}`;
    const got = await get(address);
    if (!got) return null;
    const { data } = got.answer.json<{ data: unknown[] }>();
    const texts = data.map((record) => JSON.stringify(record));
    const [generation, ...others] = generationsIn(got.answer.text);
    if (generation === undefined || others.length > 0)
      throw new Fault(`${address}: generations ${[generation, ...others]} in one answer`);
    const expected = [...subject.list(generation).values()].slice((number - 1) * perPage, number * perPage);
    if (texts.join() !== expected.join())
      throw new Fault(`${address}: not a page of generation ${generation}`);
    if (pin !== undefined && got.version !== pin) throw new Fault(`${address}: from version ${got.version}`);
    note(got.version, generation);
    return { version: got.version, texts };
  }

  const lastPage = Math.ceil(subject.size / perPage);

  async function walk(): Promise<void> {
    const first = await page(1);
    if (!first) return;
    const texts = [...first.texts];
    for (let number = 2; number <= lastPage; number++) {
      const next = await page(number, first.version);
      if (!next) return;
      texts.push(...next.texts);
    }
    const generation = versions.get(first.version) as number;
    if (texts.join() !== [...subject.list(generation).values()].join())
      throw new Fault(`the walk of version ${first.version} was not generation ${generation}`);
  }

  async function record(): Promise<void> {
    const got = await get(`${path}/${subject.anId}`);
    if (!got) return;
    const generation = generationsIn(got.answer.text)[0] as number;
    if (got.answer.text !== `{"data":${subject.list(generation).get(subject.anId)},"success":true}`)
      throw new Fault(`record ${subject.anId} of version ${got.version} is not of generation ${generation}`);
    note(got.version, generation);
  }

  async function changes(): Promise<void> {
    const [since, before] = [...versions][Math.floor(Math.random() * versions.size)] ?? [];
    if (since === undefined || before === undefined) return;
    const got = await get(`${path}/changes?since=${since}&per-page=200`);
    if (!got) return;
    const after = versions.get(got.version) ?? generationsIn(got.answer.text)[0] ?? before;
    const { data } = got.answer.json<{ data: unknown[] }>();
    const expected = expectedChanges(subject.list(before), subject.list(after)).slice(0, 200);
    if (JSON.stringify(data) !== `[${expected.join(',')}]`)
      throw new Fault(`changes from version ${since} (${before}) to ${got.version} (${after}) are not exact`);
  }

  const reads = [() => page(1 + Math.floor(Math.random() * lastPage)), walk, record, changes];

  async function read(): Promise<void> {
    let last = 0;
    while (!stopped) {
      const known = await page(1);
      if (known && known.version < last)
        throw new Fault(`version ${last} was live, and then ${known.version}`);
      last = known?.version ?? last;
      await (reads[Math.floor(Math.random() * reads.length)] as (typeof reads)[number])();
      await nextTurn();
    }
  }

  const all = Array.from({ length: concurrency }, async () => {
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
    async more(answers) {
      const target = counts.ok + counts.unavailable + answers;
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

/** The elements of a change feed between two lists, as JSON texts. */
function expectedChanges(before: ReadonlyMap<number, string>, after: ReadonlyMap<number, string>): string[] {
  const ids = [...new Set([...before.keys(), ...after.keys()])].sort((a, b) => a - b);
  return ids.flatMap((id) => {
    const [old, now] = [before.get(id), after.get(id)];
    if (old === now) return [];
    if (now === undefined) return [`{"id":${id},"change":"removed"}`];
    return [`{"id":${id},"change":"${old === undefined ? 'added' : 'changed'}","record":${now}}`];
  });
}
