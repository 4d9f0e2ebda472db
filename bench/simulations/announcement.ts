// A model of one publication: from the announcement by Redis until all processes know the version and all mirrors that wait
// have their answer. In: a layout, costs, a seed. Out: times, and what Redis servers did. Times are in ms.

import { type Random, randomFor } from '../../demo/seeded-random.ts';
import { type EventQueue, newEventQueue } from './event-queue.ts';

/** What things cost; docs/SCALE.md says which were measured, and which are assumed. */
export interface Costs {
  /** CPU time of Redis for telling one process of the announcement. */
  readonly announcement: number;
  /** CPU time of Redis for one read of the live pointer. */
  readonly pointer: number;
  /** CPU time of Redis for what a process reads once for the first page of the changes, and its length in bytes. */
  readonly changes: number;
  readonly changesBytes: number;
  /** How many pointers a process asks for: one for each collection with versions of its own. */
  readonly pointers: number;
  /** How often a process asks for them without being told. */
  readonly pollEvery: number;
  /** The share of the announcements that get lost, as with a connection that is just being made anew. */
  readonly lost: number;
  /** Time of a process for making the answer, once; then for each that waits. */
  readonly making: number;
  readonly answering: number;
  /** One way between processes and Redis: at least, and beyond that on average. */
  readonly nearLeast: number;
  readonly nearMore: number;
  /** One way to a mirror: at least, and beyond that on average. */
  readonly farLeast: number;
  readonly farMore: number;
  /** Bytes that a Redis server sends in a ms. */
  readonly bandwidth: number;
  /** How long an import of a service takes that follows another one: at least, at most. */
  readonly importLeast: number;
  readonly importMost: number;
}

/** How a service is laid out. */
export interface Layout {
  readonly name: string;
  /** How many processes one service has, and how many mirrors wait at each. */
  readonly processes: number;
  readonly mirrors: number;
  /** How many replicas share the reads of contents; 0: the master has them all. */
  readonly replicas: number;
  /** Services that follow the first one, each with a Redis and processes of its own; 0: the first one alone has processes. */
  readonly followers: number;
}

/** Times by which a share of all had it. */
export interface Spread {
  readonly half: number;
  readonly most: number;
  readonly last: number;
}

export interface Outcome {
  readonly layout: Layout;
  /** When processes answer from the version, and when mirrors have it. */
  readonly known: Spread;
  readonly answered: Spread;
  /** Commands of the master of one service each second while nothing is published, and its share of a core for them. */
  readonly restingCommands: number;
  readonly restingShare: number;
  /** Of the busiest Redis server, from the announcement to the last answer. */
  readonly busy: number;
  readonly bytes: number;
}

/** Runs the model. The same seed gives the same outcome. */
export function simulateAnnouncement(layout: Layout, costs: Costs, seed: number): Outcome {
  const known = new Times();
  const answered = new Times();
  const servers: Server[] = [];
  const services = Math.max(1, layout.followers);
  for (let n = 0; n < services; n += 1) {
    const random = randomFor(seed, layout.processes, n);
    const began = layout.followers === 0 ? 0 : followedAfter(costs, random);
    servers.push(...runService({ layout, costs, random, began, known, answered }));
  }
  const resting = layout.processes * costs.pointers * (1_000 / costs.pollEvery);
  return {
    ...{ layout, known: known.spread(), answered: answered.spread() },
    ...{ restingCommands: resting, restingShare: (resting * costs.pointer) / 1_000 },
    busy: Math.max(...servers.map(({ busy }) => busy)),
    bytes: Math.max(...servers.map(({ bytes }) => bytes)),
  };
}

/** When a service that follows has published: it waits at the first one as a mirror does, and imports the list. */
function followedAfter(costs: Costs, random: Random): number {
  const told =
    costs.announcement + 2 * near(costs, random) + costs.pointer + costs.making + far(costs, random);
  return told + costs.importLeast + random() * (costs.importMost - costs.importLeast);
}

interface Service {
  readonly layout: Layout;
  readonly costs: Costs;
  readonly random: Random;
  /** When it publishes. */
  readonly began: number;
  readonly known: Times;
  readonly answered: Times;
}

/** One publication of one service: its processes are told, or ask. */
function runService({ layout, costs, random, began, known, answered }: Service): Server[] {
  const queue = newEventQueue();
  const master = new Server(costs.bandwidth);
  const replicas = Array.from({ length: layout.replicas }, () => new Server(costs.bandwidth));
  const read = { master, replicas, costs, random, queue };
  const processes: Process[] = [];
  for (let n = 0; n < layout.processes; n += 1) {
    const contents = replicas[n % Math.max(1, replicas.length)] ?? master;
    const process = new Process(contents, {
      onKnown: (at) => known.add(began + at),
      onRead: (at) => answerMirrors(layout.mirrors, { from: began + at, costs, random, answered }),
    });
    // Polls began long before; the announcement finds each process somewhere between two of them.
    pollFrom(process, random() * costs.pollEvery - costs.pollEvery, read);
    processes.push(process);
  }
  // Redis tells all of them before it reads what any of them asks.
  queue.add(0, (now) => {
    for (const process of processes) {
      const toldAt = master.serve(now, costs.announcement, 0);
      if (random() >= costs.lost)
        queue.add(toldAt + near(costs, random), (heard) => ask(process, heard, read));
    }
  });
  queue.run();
  return [master, ...replicas];
}

/** Those that wait are answered one after the other. */
function answerMirrors(
  mirrors: number,
  { from, costs, random, answered }: { from: number; costs: Costs; random: Random; answered: Times },
): void {
  for (let n = 1; n <= mirrors; n += 1) {
    answered.add(from + costs.making + n * costs.answering + far(costs, random));
  }
}

interface Reading {
  readonly master: Server;
  readonly replicas: readonly Server[];
  readonly costs: Costs;
  readonly random: Random;
  readonly queue: EventQueue;
}

/** Asks again and again, until the process knows. */
function pollFrom(process: Process, at: number, reading: Reading): void {
  reading.queue.add(at, (now) => {
    if (process.knows) return;
    ask(process, now, reading);
    pollFrom(process, now + reading.costs.pollEvery, reading);
  });
}

/** Asks for the pointers; where contents are read from a replica, that has to have the version, too. */
function ask(process: Process, now: number, { master, costs, random, queue }: Reading): void {
  const pointers = costs.pointer * costs.pointers;
  const { contents } = process;
  for (const server of new Set([master, contents])) {
    queue.add(now + near(costs, random), (arrived) => {
      const served = server.serve(arrived, pointers, 0);
      const isNew = served >= 0;
      queue.add(served + near(costs, random), (heard) => {
        if (!isNew || !process.hears(server, new Set([master, contents]).size)) return;
        process.onKnown(heard);
        readChanges(process, heard, { costs, random, queue });
      });
    });
  }
}

/** What a process reads once, for all that wait at it. */
function readChanges(
  process: Process,
  now: number,
  { costs, random, queue }: Pick<Reading, 'costs' | 'random' | 'queue'>,
): void {
  queue.add(now + near(costs, random), (arrived) => {
    const served = process.contents.serve(arrived, costs.changes, costs.changesBytes);
    queue.add(served + near(costs, random), process.onRead);
  });
}

const exponential = (mean: number, random: Random) => -mean * Math.log(1 - random());
const near = (costs: Costs, random: Random) => costs.nearLeast + exponential(costs.nearMore, random);
const far = (costs: Costs, random: Random) => costs.farLeast + exponential(costs.farMore, random);

/** A Redis server: one thing after the other, in the order in which they come; what it sends has to go through its network. */
class Server {
  readonly #bandwidth: number;
  #freeAt = Number.NEGATIVE_INFINITY;
  #sentAt = Number.NEGATIVE_INFINITY;
  /** What it did from the announcement on. */
  busy = 0;
  bytes = 0;

  constructor(bandwidth: number) {
    this.#bandwidth = bandwidth;
  }

  /** @returns when the last byte has left */
  serve(now: number, cpu: number, bytes: number): number {
    this.#freeAt = Math.max(now, this.#freeAt) + cpu;
    this.#sentAt = Math.max(this.#freeAt, this.#sentAt) + bytes / this.#bandwidth;
    if (now >= 0) {
      this.busy += cpu;
      this.bytes += bytes;
    }
    return bytes === 0 ? this.#freeAt : this.#sentAt;
  }
}

/** What is done as a process has got so far. */
interface Steps {
  /** It answers from the version. */
  readonly onKnown: (at: number) => void;
  /** It has what those want that wait. */
  readonly onRead: (at: number) => void;
}

/** A process that serves. */
class Process {
  /** Where it reads contents. */
  readonly contents: Server;
  readonly onKnown: (at: number) => void;
  readonly onRead: (at: number) => void;
  readonly #heardOf = new Set<Server>();
  knows = false;

  constructor(contents: Server, { onKnown, onRead }: Steps) {
    this.contents = contents;
    this.onKnown = onKnown;
    this.onRead = onRead;
  }

  /** Hears of the version from a server. @returns whether it is the last of those that it has to hear it from, once */
  hears(server: Server, needed: number): boolean {
    this.#heardOf.add(server);
    if (this.knows || this.#heardOf.size < needed) return false;
    this.knows = true;
    return true;
  }
}

/** Very many times, counted by tenths of a ms. */
class Times {
  readonly #counts: number[] = [];
  #count = 0;

  add(ms: number): void {
    const tenth = Math.ceil(ms * 10);
    while (this.#counts.length <= tenth) this.#counts.push(0);
    this.#counts[tenth] = (this.#counts[tenth] as number) + 1;
    this.#count += 1;
  }

  spread(): Spread {
    const at = (share: number) => {
      let seen = 0;
      const isReached = (count: number) => {
        seen += count;
        return seen >= share * this.#count;
      };
      return this.#counts.findIndex(isReached) / 10;
    };
    return { half: at(0.5), most: at(0.99), last: at(1) };
  }
}
