// Readers that read without end through a real API and check that each response is complete and from one version.
// They compare texts, so that they need little time themselves.

import { setTimeout as sleep } from 'node:timers/promises';
import type { ApiAnswer, TestApi } from '../support/api.ts';
import { generationIn, generationsIn, type Subject } from './generations.ts';

/** Which responses other than 200 are allowed. */
export interface Tolerance {
  /** 503 with `Retry-After`: nothing is published yet, or Redis is unavailable. */
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

/** How long a reader waits after each response, in ms: the import needs the processors too. */
export const pauses = { suite: 40, proof: 5 };

/** After how many pages of a walk it is looked at what is live. */
const pagesBetweenLooks = 10;

/** How many read at the same time. */
const readers = 2;

/** How many lists of changes are remembered, as texts. */
const maxChangeTexts = 8;

/** Starts readers of a subject; whoever calls this calls `stop`. */
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
    const encoding = (counts.ok + counts.unavailable) % 2 === 0 ? 'gzip' : 'identity';
    const answer = await api.get(address, { headers: { 'accept-encoding': encoding } });
    counts.slowestMs = Math.max(counts.slowestMs, performance.now() - start);
    await sleep(pauseMs);
    if (answer.status === 503 && tolerance.unavailable) {
      if (!/^\d+$/.test(answer.headers.get('retry-after') ?? '')) throw new Fault('503 without Retry-After');
      counts.unavailable += 1;
      return null;
    }
    if (answer.status !== 200) throw new Fault(`${address}: ${answer.status} ${answer.text}`);
    counts.ok += 1;
    return { version: Number(answer.headers.get('medref-version')), answer };
  }

  /** A page that must be exactly that of the generation whose marks it has. @returns what it is of */
  async function page(number: number, pin?: number): Promise<{ version: number; generation: number } | null> {
    const address = `${path}?${pin ? `version=${pin}&` : ''}page=${number}&per-page=${perPage}`;
    const got = await get(address);
    if (!got) return null;
    const { text } = got.answer;
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

  /** Whatever is live, which is never older than what was live before. */
  async function look(): Promise<void> {
    const before = last;
    const known = await page(1);
    if (known && known.version < before)
      throw new Fault(`version ${before} was live, and then ${known.version}`);
    last = Math.max(last, known?.version ?? 0);
  }

  /** Every page is, byte for byte, a page of one generation, and so they are all of it. */
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
    const generation = generationIn(got.answer.text) as number;
    if (got.answer.text !== `{"data":${subject.list(generation).get(subject.anId)},"success":true}`)
      throw new Fault(`record ${subject.anId} of version ${got.version} is not of generation ${generation}`);
    note(got.version, generation);
  }

  async function changes(): Promise<void> {
    const [since, before] = [...versions][Math.floor(Math.random() * versions.size)] ?? [];
    if (since === undefined || before === undefined) return;
    const got = await get(`${path}/changes?since=${since}&per-page=200`);
    if (!got) return;
    const after = versions.get(got.version) ?? generationIn(got.answer.text) ?? before;
    if (!got.answer.text.startsWith(`{"data":[${changesText(before, after)}],"_links":{`))
      throw new Fault(`changes from version ${since} (${before}) to ${got.version} (${after}) are not exact`);
  }

  /** The first 200 changes between two generations. */
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
