// In: entries of a search index, in any order. Out: the same, sorted, each once. Memory does not grow with the list: what
// is in memory at once is sorted as a run, Redis keeps the runs in pieces, and they are merged as they are read again.

import type { Redis } from '../../shared/redis/connections.ts';
import type { PartKeys } from '../../shared/store/keys.ts';
import { StagedLostError } from '../../shared/store/scripts.ts';
import type { BegunVersion } from '../scripts/held.ts';
import { type RunPiece, stageRuns } from '../scripts/stage-runs.ts';
import { partsOf } from './parts.ts';

/** How many entries are sorted at once, or bytes of them, where entries are long. */
const runEntries = 32_768;
const runBytes = 16_000_000;

/** How much of a run is a piece; all pieces of the merge take some MB. */
const piece = { count: 256, length: 128_000, lengthOf: (entry: string) => entry.length };

/** How many pieces are sent with one command: some 100 KB, a MB at most. */
const piecesAtOnce = 8;

/** Between the entries of a piece; folded names have no white space but spaces, and barcodes have none. */
const separator = '\n';
const separatorBytes = Buffer.from(separator);
const separatorCode = separatorBytes[0] as number;

/** Sorts the entries of one staged search index by their bytes, one character each. Throws LockLostError, StagedLostError, and whatever Redis answers with. */
export class EntrySorter {
  readonly #redis: Redis;
  readonly #begun: BegunVersion;
  readonly #part: PartKeys;
  readonly #name: string;
  /** As bytes, which the garbage collector need not move: entries with a separator after each batch of them. */
  #waiting: Buffer[] = [];
  #waitingCount = 0;
  #waitingBytes = 0;
  /** How many pieces each run has. */
  readonly #runs: number[] = [];

  /** @param name tells its runs from those of another sorter of the same part */
  constructor(redis: Redis, begun: BegunVersion, part: PartKeys, name: string) {
    this.#redis = redis;
    this.#begun = begun;
    this.#part = part;
    this.#name = name;
  }

  /** Takes entries; once there are enough for a run, Redis keeps them. */
  async add(entries: readonly string[]): Promise<void> {
    const bytes = Buffer.from(entries.join(separator));
    this.#waiting.push(bytes, separatorBytes);
    this.#waitingCount += entries.length;
    this.#waitingBytes += bytes.length;
    if (this.#waitingCount >= runEntries || this.#waitingBytes >= runBytes) await this.#endRun();
  }

  /** All entries, some at a time; none may be added any more. */
  async *sorted(): AsyncGenerator<readonly string[]> {
    await this.#endRun();
    let runs = this.#runs.map((pieces, run) => new SortedRun(pieces, (piece) => this.#read(run, piece)));
    for (;;) {
      for (const run of runs) await run.load();
      runs = runs.filter((run) => !run.isOver);
      if (runs.length === 0) return;
      // Up to the least of the last entries that are loaded, no run has any that is not.
      const bound = runs.map((run) => run.last).reduce((least, last) => (last < least ? last : least));
      yield distinct(runs.flatMap((run) => run.takeUpTo(bound)).sort());
    }
  }

  async #endRun(): Promise<void> {
    if (this.#waitingCount === 0) return;
    const waiting = entriesIn(Buffer.concat(this.#waiting.slice(0, -1)));
    this.#waiting = [];
    this.#waitingCount = 0;
    this.#waitingBytes = 0;
    const run = this.#runs.length;
    const pieces = [...partsOf(distinct(waiting.sort()), piece)].map(
      (entries, n): RunPiece => [this.#pieceName(run, n), Buffer.from(entries.join(separator), 'latin1')],
    );
    this.#runs.push(pieces.length);
    for (let from = 0; from < pieces.length; from += piecesAtOnce) {
      await stageRuns(this.#redis, this.#begun, this.#part, pieces.slice(from, from + piecesAtOnce));
    }
  }

  async #read(run: number, piece: number): Promise<readonly string[]> {
    const { sorting } = this.#part.workspace(this.#begun.name);
    const stored = await this.#redis.hgetBuffer(sorting, this.#pieceName(run, piece));
    if (!stored) throw new StagedLostError();
    return entriesIn(stored);
  }

  #pieceName(run: number, piece: number): string {
    return `${this.#name}:${run}:${piece}`;
  }
}

/** A run as it is read again: the next piece is under way while one is taken. */
class SortedRun {
  readonly #pieces: number;
  readonly #read: (piece: number) => Promise<readonly string[]>;
  #next: Promise<readonly string[]> | null;
  #asked = 0;
  #loaded: readonly string[] = [];
  #taken = 0;

  constructor(pieces: number, read: (piece: number) => Promise<readonly string[]>) {
    this.#pieces = pieces;
    this.#read = read;
    this.#next = this.#ask();
  }

  /** Sees to it that there are entries to be taken, unless the run is over. */
  async load(): Promise<void> {
    if (this.#taken < this.#loaded.length) return;
    this.#loaded = (await this.#next) ?? [];
    this.#taken = 0;
    this.#next = this.#ask();
  }

  get isOver(): boolean {
    return this.#loaded.length === 0;
  }

  /** The greatest entry that is loaded. */
  get last(): string {
    return this.#loaded.at(-1) as string;
  }

  /** The entries that are loaded and not beyond a bound. */
  takeUpTo(bound: string): readonly string[] {
    const from = this.#taken;
    while (this.#taken < this.#loaded.length && (this.#loaded[this.#taken] as string) <= bound)
      this.#taken += 1;
    return this.#loaded.slice(from, this.#taken);
  }

  #ask(): Promise<readonly string[]> | null {
    if (this.#asked === this.#pieces) return null;
    const piece = this.#read(this.#asked);
    this.#asked += 1;
    piece.catch(() => undefined); // Thrown as it is loaded.
    return piece;
  }
}

/** Each as a string of its own: a part of a longer one takes twice as long to compare. */
function entriesIn(piece: Buffer): string[] {
  const entries: string[] = [];
  for (let from = 0; from <= piece.length; ) {
    const next = piece.indexOf(separatorCode, from);
    const to = next === -1 ? piece.length : next;
    entries.push(piece.toString('latin1', from, to));
    from = to + 1;
  }
  return entries;
}

function distinct(sorted: readonly string[]): string[] {
  return sorted.filter((entry, n) => entry !== sorted[n - 1]);
}
