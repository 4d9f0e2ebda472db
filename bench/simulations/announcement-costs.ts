// What the model of an announcement is given, each with where it is from; and the layouts that are tried.

import type { Costs, Layout } from './announcement.ts';

interface Parameter {
  readonly name: keyof Costs;
  readonly value: number;
  /** What it is, with its unit. */
  readonly means: string;
  /** Where the value is from. */
  readonly from: string;
}

const measured = 'measured: `npm run simulate -- --measure`';
const assumed = 'assumed';

/** Times in ms. */
export const parameters: readonly Parameter[] = [
  {
    name: 'announcement',
    value: 0.008,
    means: 'CPU of Redis for telling one process of the announcement, ms',
    from: measured,
  },
  {
    name: 'pointer',
    value: 0.015,
    means: 'CPU of Redis for one read of the live pointer, ms',
    from: measured,
  },
  {
    name: 'changes',
    value: 0.16,
    means: 'CPU of Redis for a change set of 250 and 200 records, ms',
    from: measured,
  },
  { name: 'changesBytes', value: 78_454, means: 'what Redis sends for them, bytes', from: measured },
  {
    name: 'pointers',
    value: 2,
    means: 'pointers that a process asks for, products and companies',
    from: '`api/reads/live-versions.ts`',
  },
  {
    name: 'pollEvery',
    value: 500,
    means: 'a process asks for them this often, ms',
    from: '`api/reads/live-versions.ts`',
  },
  { name: 'lost', value: 0.001, means: 'share of the announcements that get lost', from: assumed },
  { name: 'making', value: 20, means: 'making an answer, once in a process, ms', from: assumed },
  {
    name: 'answering',
    value: 0.1,
    means: 'answering one that waits, ms',
    from: 'the bound of `npm run prove -- only=waiting`: 10,000 within 1 s',
  },
  { name: 'nearLeast', value: 0.2, means: 'one way between process and Redis, at least, ms', from: assumed },
  { name: 'nearMore', value: 0.2, means: 'the same, beyond that on average, ms', from: assumed },
  { name: 'farLeast', value: 10, means: 'one way to a mirror, at least, ms', from: assumed },
  { name: 'farMore', value: 20, means: 'the same, beyond that on average, ms', from: assumed },
  {
    name: 'bandwidth',
    value: 1_000_000,
    means: 'what a Redis server can send, bytes each ms',
    from: assumed,
  },
  {
    name: 'importLeast',
    value: 2_400,
    means: 'an import of the real list by a service that follows, at least, ms',
    from: '[OPERATIONS.md](OPERATIONS.md#redis)',
  },
  {
    name: 'importMost',
    value: 3_900,
    means: 'the same, at most, with the wait for the second of its number, ms',
    from: '[OPERATIONS.md](OPERATIONS.md#redis)',
  },
];

/** The costs by their names. */
export const costs = Object.fromEntries(
  parameters.map(({ name, value }) => [name, value]),
) as unknown as Costs;

/** A million mirrors wait in each. */
export const layouts: readonly Layout[] = [
  {
    name: 'the fewest processes that may hold them: 50, one Redis',
    ...{ processes: 50, mirrors: 20_000, replicas: 0, followers: 0 },
  },
  {
    name: '1,000 processes, one Redis',
    ...{ processes: 1_000, mirrors: 1_000, replicas: 0, followers: 0 },
  },
  {
    name: '10,000 processes, one Redis',
    ...{ processes: 10_000, mirrors: 100, replicas: 0, followers: 0 },
  },
  {
    name: '10,000 processes, a master and 20 replicas (`READ_FROM=replica`)',
    ...{ processes: 10_000, mirrors: 100, replicas: 20, followers: 0 },
  },
  {
    name: '100 services of 100 processes, each with its Redis, that follow one (`FOLLOW=true`)',
    ...{ processes: 100, mirrors: 100, replicas: 0, followers: 100 },
  },
];
