// In: what stands in Redis of each collection. Out: gauges of it, which each scrape reads anew; without Redis there are none.

import { Gauge, type Registry } from 'prom-client';
import type { ServedCollection } from '../../shared/collections/define.ts';
import { knownTime } from '../../shared/dated-ahead.ts';
import type { ImportOutcome } from '../../shared/ended-imports.ts';
import { versionOf } from '../../shared/store/versions.ts';
import type { Standing, Standings } from '../reads/standings.ts';
import { within } from '../reads/within.ts';

/** What the gauges are read from. */
export interface CollectionMetricsSources {
  readonly served: readonly ServedCollection[];
  readonly standings: Pick<Standings, 'read'>;
}

/** A scrape waits no longer for Redis, in ms: then Redis is as good as away. */
const readWithinMs = 2_000;

/** Outcomes that the history may have. */
const outcomes: readonly ImportOutcome[] = [
  ...(['published', 'unchanged', 'refused', 'failed', 'locked', 'held', 'rolled-back'] as const),
];

/** What the report of an import counts. */
const counts = ['read', 'written', 'rejected', 'added', 'changed', 'removed'] as const;

type Labels = Readonly<Record<string, string>>;

/** What a gauge is at, by its labels; what is not known is left out. */
type Figures = Iterable<readonly [Labels, number | null | undefined]>;

/** Makes the gauges. */
export function collectionMetrics(registry: Registry, { served, standings }: CollectionMetricsSources): void {
  // Nothing is known where Redis is away, or does not answer in time.
  const ask = sharedWhileUnderWay(() => within(standings.read(), readWithinMs).catch(() => null));
  const gauge = (
    name: string,
    help: string,
    figuresOf: (all: readonly Standing[] | null) => Figures,
    labelNames: string[],
  ) =>
    new Gauge({
      ...{ name: `medref_${name}`, help, labelNames, registers: [registry] },
      // Each sets itself: what one of them sets in another is not seen before the next scrape.
      async collect() {
        const all = await ask();
        this.reset();
        for (const [labels, figure] of figuresOf(all))
          if (figure !== null && figure !== undefined) this.set(labels, figure);
      },
    });
  const up = (all: readonly Standing[] | null): Figures => [[{}, all ? 1 : 0]];
  gauge('redis_up', 'Whether this scrape could be read from Redis: 1, else 0.', up, []);

  /** Of each collection that is served, also those that come and go with another one. */
  const live = (name: string, help: string, figureOf: (version: LiveFigures) => number | null) =>
    gauge(`live_${name}`, help, (all) => liveFigures(served, all ?? [], figureOf), ['collection']);
  live('version', 'Number of the live version.', ({ version }) => version);
  live('records', 'Records of the live version.', ({ totalCount }) => totalCount);
  live(
    'published_timestamp_seconds',
    'When the live version became live; absent if that is dated in the future.',
    ({ publishedAt }) => seconds(knownTime(publishedAt)),
  );

  /** Of each collection that is imported. */
  const each = (name: string, help: string, figureOf: (standing: Standing) => number | null | undefined) =>
    gauge(
      name,
      help,
      (all) => (all ?? []).map((it) => [{ collection: it.source.name }, figureOf(it)] as const),
      ['collection'],
    );
  const eachBy = (
    label: string,
    values: readonly string[],
    name: string,
    help: string,
    figureOf: (standing: Standing, value: never) => number | null | undefined,
  ) =>
    gauge(
      name,
      help,
      (all) =>
        (all ?? []).flatMap((it) =>
          values.map(
            (value) =>
              [{ collection: it.source.name, [label]: value }, figureOf(it, value as never)] as const,
          ),
        ),
      ['collection', label],
    );
  each(
    'checked_timestamp_seconds',
    'When upstream was last found to be as the live version; absent after a rollback, and if that is dated in the future.',
    (it) => seconds(it.checkedAt),
  );
  each('last_import_timestamp_seconds', 'When the last import ended.', (it) =>
    seconds(it.imports?.last?.endedAt),
  );
  each(
    'last_import_duration_seconds',
    'How long the last import took.',
    ({ imports }) => imports?.last && imports.last.durationMs / 1000,
  );
  eachBy(
    'outcome',
    outcomes,
    'last_import_outcome',
    'How the last import ended: 1 for its outcome, 0 for the others.',
    ({ imports }, outcome: ImportOutcome) => imports?.last && Number(imports.last.outcome === outcome),
  );
  eachBy(
    'kind',
    counts,
    'last_import_records',
    'Records of the last import that read any, by what became of them.',
    ({ imports }, kind: (typeof counts)[number]) => imports?.lastThatRead?.[kind],
  );
  eachBy(
    'outcome',
    outcomes,
    'kept_imports',
    'Imports of the history, which keeps the last hundred, by outcome.',
    ({ imports }, outcome: ImportOutcome) => imports && (imports.kept.get(outcome) ?? 0),
  );
  each('held', 'Whether scheduled imports are held, because of a rollback: 1, else 0.', ({ heldSince }) =>
    Number(heldSince !== null),
  );
  each('held_since_timestamp_seconds', 'Since when they are; absent where they are not.', (it) =>
    seconds(it.heldSince),
  );
  each('locked', 'Whether an import or a rollback is under way: 1, else 0.', ({ lockedSince }) =>
    Number(lockedSince !== null),
  );
  each('locked_since_timestamp_seconds', 'Since when it is; absent where none is.', (it) =>
    seconds(it.lockedSince),
  );
  each(
    'damage_marks',
    'Contents that readers found damaged, and that no import has mended yet.',
    ({ damageMarks }) => damageMarks,
  );
}

interface LiveFigures {
  readonly version: number;
  readonly totalCount: number;
  readonly publishedAt: string;
}

function* liveFigures(
  served: readonly ServedCollection[],
  all: readonly Standing[],
  figureOf: (version: LiveFigures) => number | null,
): Generator<readonly [Labels, number | null]> {
  for (const it of served) {
    const live = all.find(({ source }) => source === it.source)?.live;
    const version = live && versionOf(it, live);
    if (version) yield [{ collection: it.collection.name }, figureOf(version)];
  }
}

function seconds(time: string | null | undefined): number | null {
  return time ? Date.parse(time) / 1000 : null;
}

/** Asks once for all gauges of a scrape, and for all scrapes that come meanwhile. */
function sharedWhileUnderWay<Value>(read: () => Promise<Value>): () => Promise<Value> {
  let asking: Promise<Value> | undefined;
  return () => {
    asking ??= read().finally(() => {
      asking = undefined;
    });
    return asking;
  };
}
