// Processes that serve behind one port (node:cluster): started, replaced where they end or where that is asked for (SIGUSR2),
// and ended. Connections are dealt out to them in turn.

import cluster, { type Worker } from 'node:cluster';
import { once } from 'node:events';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Counted } from '../api/admin/gathered-metrics.ts';
import type { Logger } from './logger.ts';
import { oneAtATime } from './one-at-a-time.ts';
import type { Order, Report } from './worker.ts';

/** A worker that is told to stop and has not ended after this long is killed, in ms; longer than its last answers may take. */
const endMs = 13_000;

/** A worker that does not answer this long after its start is killed, in ms; it takes a second or two, on a busy machine some more. */
const startMs = 30_000;

/** A scrape waits no longer than this for what a worker counts, in ms. */
const countMs = 1_000;

/** A worker that ends sooner than this after its start has ended soon, in ms. */
const soonMs = 60_000;

/** Between starts of workers that end soon, in ms: it doubles each time, up to the longest. */
const pause = { first: 1_000, longest: 60_000 };

/** What the pool works with. */
export interface WorkerPoolOptions {
  readonly count: number;
  readonly logger: Logger;
  /** No further worker is started once it is aborted; those that there are end by {@link WorkerPool.stop}. */
  readonly signal: AbortSignal;
  /** See startMs and endMs; tests shorten them. */
  readonly startMs?: number | undefined;
  readonly endMs?: number | undefined;
  /** Told what a worker counts; and that it has ended. */
  readonly onCounted: (worker: number, counted: Counted) => void;
  readonly onEnded: (worker: number) => void;
}

/** Where all answer; or the exit code of one that could not start, and has said why. */
export type FirstStart = { readonly address: string } | { readonly code: number };

/** One worker. */
interface Member {
  readonly worker: Worker;
  readonly startedAt: number;
  /** Where it answers; `null` where it has ended before it did. */
  readonly answers: Promise<string | null>;
  /** Its exit code, when all that it has told was heard. */
  readonly ended: Promise<number>;
  hasAnswered: boolean;
  isToEnd: boolean;
  /** Who waits for what it counts. */
  readonly counting: (() => void)[];
}

/** The workers of one process, which serves nothing itself. */
export class WorkerPool {
  readonly #options: WorkerPoolOptions;
  readonly #members = new Set<Member>();
  /** No two workers are replaced at a time. */
  readonly #inTurn = oneAtATime();
  readonly #onReplace = () => void this.#inTurn(() => this.#replaceAll());
  #isUp = false;
  /** How many have ended soon, one after the other. */
  #endedSoon = 0;

  constructor(options: WorkerPoolOptions) {
    this.#options = options;
    process.on('SIGUSR2', this.#onReplace);
  }

  /** Starts all: the others once the first one answers, so that what is wrong for all of them is said once. */
  async start(): Promise<FirstStart> {
    const { count, signal } = this.#options;
    const first = this.#begin();
    const address = await first.answers;
    if (address === null) return { code: await first.ended };
    const others = Array.from({ length: signal.aborted ? 0 : count - 1 }, () => this.#begin());
    for (const { answers, ended } of others) if ((await answers) === null) return { code: await ended };
    this.#isUp = true;
    for (let missing = count - this.#members.size; missing > 0; missing -= 1)
      this.#inTurn(() => this.#replaceEnded());
    return { address };
  }

  /** Has each worker tell what it counts, within a bound. */
  async count(): Promise<void> {
    const asked = [...this.#members].filter(({ hasAnswered }) => hasAnswered);
    const told = asked.map((member) => {
      order(member, 'count');
      return new Promise<void>((resolve) => member.counting.push(resolve));
    });
    await Promise.race([Promise.all(told), sleep(countMs, null, { ref: false })]);
  }

  /** Ends all in order. */
  async stop(): Promise<void> {
    await Promise.all([...this.#members].map((member) => this.#end(member)));
    process.off('SIGUSR2', this.#onReplace);
  }

  #begin(): Member {
    const { onCounted } = this.#options;
    const worker = cluster.fork();
    // What it has told last may come after its exit.
    const ended = Promise.all([once(worker, 'exit'), once(worker, 'disconnect')]).then(
      ([[code]]) => code ?? 1,
    );
    const answered = new Promise<string>((resolve) => {
      worker.on('message', (report: Report) => {
        if ('answersAt' in report) {
          member.hasAnswered = true;
          resolve(report.answersAt);
        } else {
          onCounted(worker.id, report.counted);
          for (const told of member.counting.splice(0)) told();
        }
      });
    });
    const member: Member = {
      ...{ worker, startedAt: performance.now(), ended, hasAnswered: false, isToEnd: false, counting: [] },
      answers: Promise.race([answered, ended.then(() => null)]),
    };
    this.#members.add(member);
    this.#killAfter(this.#options.startMs ?? startMs, member, {
      unless: member.answers,
      because: 'It does not come to answer, so it is killed.',
    });
    ended.then(() => this.#hasEnded(member));
    return member;
  }

  #hasEnded(member: Member): void {
    const { logger, signal, onEnded } = this.#options;
    const { worker, startedAt, hasAnswered, isToEnd, counting } = member;
    this.#members.delete(member);
    onEnded(worker.id);
    for (const told of counting) told();
    if (isToEnd || signal.aborted || !this.#isUp) return;
    this.#endedSoon = performance.now() - startedAt < soonMs ? this.#endedSoon + 1 : 1;
    const { pid, exitCode, signalCode } = worker.process;
    logger.error({ worker: pid, code: exitCode, signal: signalCode }, 'A process that serves has ended.');
    // Who starts one sees by itself that it did not come to answer.
    if (hasAnswered) this.#inTurn(() => this.#replaceEnded());
  }

  /** Starts a worker in the place of one that has ended, again and again until it answers; unless its place was taken. */
  async #replaceEnded(): Promise<void> {
    const { count, logger, signal } = this.#options;
    while (this.#members.size < count && !signal.aborted) {
      const pauseMs =
        this.#endedSoon < 2 ? 0 : Math.min(pause.first * 2 ** (this.#endedSoon - 2), pause.longest);
      logger.info({ pauseMs }, 'Another process takes its place.');
      await sleep(pauseMs, null, { signal }).catch(() => undefined);
      if (!signal.aborted) await this.#begin().answers;
    }
  }

  /** Replaces each worker: the next one ends when the one in its place answers. */
  async #replaceAll(): Promise<void> {
    const { logger, signal } = this.#options;
    logger.info('Each process that serves is replaced by another one.');
    for (const old of [...this.#members]) {
      // One that has died meanwhile has its turn after this.
      if (!this.#members.has(old)) continue;
      if (signal.aborted) return;
      if ((await this.#begin().answers) === null) {
        logger.error('The new process could not start, so the others go on as they are.');
        return;
      }
      await this.#end(old);
    }
    logger.info('Each process that serves was replaced.');
  }

  async #end(member: Member): Promise<void> {
    member.isToEnd = true;
    order(member, 'stop');
    const { ended } = member;
    this.#killAfter(this.#options.endMs ?? endMs, member, {
      unless: ended,
      because: 'It does not end, so it is killed.',
    });
    await ended;
  }

  /** Kills a worker after so many ms, unless something has come about by then. */
  #killAfter(
    ms: number,
    { worker }: Member,
    { unless, because }: { readonly unless: Promise<unknown>; readonly because: string },
  ): void {
    const timer = setTimeout(() => {
      this.#options.logger.error({ worker: worker.process.pid }, because);
      worker.process.kill('SIGKILL');
    }, ms);
    unless.then(() => clearTimeout(timer));
  }
}

/** One that has gone hears nothing, and its end is heard of. */
function order({ worker }: Member, it: Order): void {
  if (worker.isConnected()) worker.send(it, () => undefined);
}
