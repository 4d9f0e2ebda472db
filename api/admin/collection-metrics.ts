// Gauges of the collections, which every scrape reads from Redis; if Redis is unavailable, there is only medref_redis_up.

import { Gauge, type Registry } from 'prom-client';
import type { CollectionState } from '../../shared/collection-status.ts';
import type { ImportOutcome, PastImport } from '../../shared/import-history.ts';
import type { ImporterState } from '../../shared/importer-heartbeats.ts';
import type { ListedClient } from '../../shared/store/client-versions.ts';
import { knownTime, withTimeout } from '../../shared/time.ts';

/** The state of all served collections, each with its whole import history, and of importers. */
export interface ScrapedState {
  readonly states: readonly CollectionState[];
  readonly importers: readonly ImporterState[];
  /** All keys whose clients are active, with the versions that they have. */
  readonly clients: readonly ListedClient[];
}

/** Reads the state from Redis. */
export type ReadStates = () => Promise<ScrapedState>;

/** How long a scrape waits for Redis, in ms. */
const readTimeoutMs = 2_000;

const outcomes: readonly ImportOutcome[] = [
  ...([
    'published',
    'candidate',
    'unchanged',
    'refused',
    'failed',
    'interrupted',
    'locked',
    'paused',
    'rolled-back',
    'discarded',
  ] as const),
];

/** The counts of an import report. */
const counts = ['read', 'written', 'rejected', 'added', 'changed', 'removed'] as const;

/** A value of a gauge; no value: the series is absent. */
type Value = number | null | undefined;

interface GaugeDefinition {
  readonly name: string;
  readonly help: string;
  /** Whether derived collections have the gauge, too. */
  readonly isOfAll?: boolean;
  /** The label besides `collection`. */
  readonly label?: string;
  /** The value, or the values by that label. */
  readonly value: (
    state: CollectionState,
    others: Omit<ScrapedState, 'states'>,
  ) => Value | Readonly<Record<string, Value>>;
}

const definitions: readonly GaugeDefinition[] = [
  {
    name: 'live',
    help: 'Whether a version is live: 1, else 0.',
    isOfAll: true,
    value: ({ live }) => Number(live !== null),
  },
  {
    name: 'imported',
    help: 'Whether the collection is imported, by an importer or in the history: 1, else 0.',
    value: ({ collection, lastImports }, { importers }) =>
      Number(lastImports.length > 0 || importers.some(({ collections }) => collections.includes(collection))),
  },
  {
    name: 'importer_heartbeat_timestamp_seconds',
    help: 'When an importer of the collection was last seen; absent if none is known.',
    value: ({ collection }, { importers }) =>
      seconds(importers.find(({ collections }) => collections.includes(collection))?.seenAt),
  },
  {
    name: 'live_version',
    help: 'Number of the live version.',
    isOfAll: true,
    value: ({ live }) => live?.version,
  },
  {
    name: 'live_records',
    help: 'Records of the live version.',
    isOfAll: true,
    value: ({ live }) => live?.totalCount,
  },
  {
    name: 'live_published_timestamp_seconds',
    help: 'When the live version was published; absent if that is in the future.',
    isOfAll: true,
    value: ({ live }) => seconds(live && knownTime(live.publishedAt)),
  },
  {
    name: 'checked_timestamp_seconds',
    help: 'When upstream last had the data of the live version; absent after a rollback, and if that is in the future.',
    value: ({ checkedAt }) => seconds(checkedAt),
  },
  {
    name: 'last_import_timestamp_seconds',
    help: 'When the last import ended.',
    value: (state) => seconds(lastImport(state)?.endedAt),
  },
  {
    name: 'last_import_duration_seconds',
    help: 'Duration of the last import.',
    value: (state) => {
      const last = lastImport(state);
      return last && last.durationMs / 1000;
    },
  },
  {
    name: 'last_import_outcome',
    help: 'Outcome of the last import: 1 for its outcome, 0 for the others.',
    label: 'outcome',
    value: (state) => {
      const last = lastImport(state);
      return last && by(outcomes, (outcome) => Number(last.outcome === outcome));
    },
  },
  {
    name: 'last_import_records',
    help: 'Records of the last import that read any, by what became of them.',
    label: 'kind',
    value: ({ lastImports }) => {
      const last = lastImports.find(({ read }) => read > 0);
      return last && by(counts, (kind) => last[kind]);
    },
  },
  {
    name: 'kept_imports',
    help: 'Imports in the history, which keeps the last hundred, by outcome.',
    label: 'outcome',
    value: ({ lastImports }) =>
      by(outcomes, (outcome) => lastImports.filter((it) => it.outcome === outcome).length),
  },
  {
    name: 'paused',
    help: 'Whether a rollback has paused scheduled imports: 1, else 0.',
    value: ({ pause }) => Number(pause !== null),
  },
  {
    name: 'paused_since_timestamp_seconds',
    help: 'Since when scheduled imports are paused; absent if they are not.',
    value: ({ pause }) => seconds(pause?.since),
  },
  {
    name: 'candidate_since_timestamp_seconds',
    help: 'Since when a candidate waits for an operator; absent if none does, or if it is outdated.',
    value: ({ candidate }) => (candidate && !candidate.outdated ? seconds(candidate.madeAt) : null),
  },
  {
    name: 'locked',
    help: 'Whether an import or a rollback is in progress: 1, else 0.',
    value: ({ lock }) => Number(lock !== null),
  },
  {
    name: 'locked_since_timestamp_seconds',
    help: 'Since when it is in progress; absent if none is.',
    value: ({ lock }) => seconds(lock?.since),
  },
  {
    name: 'clients_behind',
    help: 'Clients whose copy is of an earlier version than the live one.',
    isOfAll: true,
    value: ({ collection }, { clients }) => behind(clients, collection).filter((it) => it > 0).length,
  },
  {
    name: 'most_versions_behind',
    help: 'Versions that were published since the oldest copy of a client; at most 101.',
    isOfAll: true,
    value: ({ collection }, { clients }) => Math.max(0, ...behind(clients, collection)),
  },
  {
    name: 'damage_marks',
    help: 'Known damage that no import has repaired yet: unreadable keys, missing parts, and contents that verify marked.',
    value: ({ damage }) => damage.length,
  },
];

/** Registers the gauges. */
export function collectionMetrics(registry: Registry, read: ReadStates): void {
  const readOnce = sharedWhileInFlight(() => withTimeout(read(), readTimeoutMs).catch(() => null));
  const registers = [registry];
  new Gauge({
    name: 'medref_redis_up',
    help: 'Whether this scrape could read from Redis: 1, else 0.',
    registers,
    async collect() {
      this.set((await readOnce()) ? 1 : 0);
    },
  });
  new Gauge({
    name: 'medref_ready',
    help: 'Whether Redis can be read and a version is live: 1, else 0.',
    registers,
    async collect() {
      const isLive = (await readOnce())?.states.some(({ live }) => live !== null) ?? false;
      this.set(Number(isLive));
    },
  });
  for (const { name, help, isOfAll = false, label = '', value } of definitions)
    new Gauge({
      name: `medref_${name}`,
      help,
      labelNames: ['collection', ...(label ? [label] : [])],
      registers,
      async collect() {
        const { states, ...others } = (await readOnce()) ?? { states: [], importers: [], clients: [] };
        this.reset();
        for (const state of states) {
          if (!isOfAll && state.derivedFrom !== null) continue;
          const { collection } = state;
          const found = value(state, others) ?? {};
          if (typeof found === 'number') this.set({ collection }, found);
          else
            for (const [key, it] of Object.entries(found))
              if (it !== null && it !== undefined) this.set({ collection, [label]: key }, it);
        }
      },
    });
}

/** Returns the last import that had the lock. */
function lastImport({ lastImports }: CollectionState): PastImport | undefined {
  return lastImports.find(({ outcome }) => outcome !== 'locked');
}

/** Returns how far behind the copies of a collection are. */
function behind(clients: readonly ListedClient[], collection: string): number[] {
  return clients.flatMap(({ versions }) => versions[collection]?.behind ?? []);
}

function by<Key extends string>(keys: readonly Key[], get: (key: Key) => Value): Record<string, Value> {
  return Object.fromEntries(keys.map((key) => [key, get(key)]));
}

function seconds(time: string | null | undefined): number | null {
  return time ? Date.parse(time) / 1000 : null;
}

/** Lets all gauges of a scrape, and scrapes at the same time, share one read. */
function sharedWhileInFlight<Result>(read: () => Promise<Result>): () => Promise<Result> {
  let inFlight: Promise<Result> | undefined;
  return () => {
    inFlight ??= read().finally(() => {
      inFlight = undefined;
    });
    return inFlight;
  };
}
