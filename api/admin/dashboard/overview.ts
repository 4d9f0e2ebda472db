// The first page: problems with the commands that help, then the state of each collection.

import { html } from 'hono/html';
import {
  type CollectionStatus,
  evaluate,
  type LiveStatus,
  lastEnded,
  readCollectionStates,
} from '../../../shared/collection-status.ts';
import { longestGapMs } from '../../../shared/cron.ts';
import {
  type ImporterState,
  importerProblem,
  nextRunOf,
  readImporters,
} from '../../../shared/importer-heartbeats.ts';
import { damageIn } from '../../../shared/redis/failures.ts';
import { setupWarnings } from '../../../shared/redis/server-setup.ts';
import { listActiveClients, readRolledBack } from '../../../shared/store/client-versions.ts';
import type { StoredProgress } from '../../../shared/store/import-locks.ts';
import { servedKeys } from '../../../shared/store/keys.ts';
import {
  commands,
  facts,
  type Html,
  none,
  pageLink,
  sentenceLength,
  shownCount,
  shownText,
  shownTime,
  table,
} from './html.ts';
import { outcomeBadge } from './imports.ts';
import { type DashboardSources, definePage, refreshParameter } from './page.ts';

/** After how many seconds a browser loads the page again, also while an import runs. */
const refreshSeconds = 30;
const importingRefreshSeconds = 5;

/** How much longer than the longest gap of the schedule an upstream check may take to come, in ms. */
const graceMs = 3_600_000;

export const overviewPage = definePage({
  label: 'Overview',
  collections: 'none',
  parameters: refreshParameter,
  async render({ sources: { redis, keyPrefix, served, isImported }, query }) {
    const [states, importers, warnings, holders] = await Promise.all([
      readCollectionStates({ redis, keyPrefix, served }),
      readImporters(redis, keyPrefix),
      setupWarnings(redis, keyPrefix),
      rolledBackProblems({ redis, keyPrefix, served }),
    ]);
    const [last] = importers;
    const maxAgeSeconds = last ? (longestGapMs(last.cron, last.timezone) + graceMs) / 1_000 : null;
    const all = states.map((state) =>
      evaluate(state, { maxAgeSeconds, maxAgeOf: 'the schedule', isImported: isImported(state.collection) }),
    );
    const problems = [
      ...importerProblems(importers),
      ...all.flatMap(problemsOf),
      ...holders,
      ...warnings.map((warning) => html`<li><p>${shownText(warning, sentenceLength)}</p></li>`),
    ];
    const isImporting = states.some(({ lock }) => lock !== null);
    const body = html`<section aria-labelledby="problems">
<h2 id="problems">${problems.length === 0 ? 'No problems' : 'Problems'}</h2>
${
  problems.length === 0
    ? html`<p class="calm">Every imported collection is live, and its last import succeeded.</p>`
    : html`<ol class="problems">${problems}</ol>`
}
</section>
<section aria-labelledby="collections">
<h2 id="collections">Collections</h2>
<div class="cards">${all.map((it) => card(it, importers))}</div>
</section>
<section aria-labelledby="importers">
<h2 id="importers">Importers</h2>
${importers.length === 0 ? html`<p>No importer has run yet. Run <code>medref schedule</code>, or start imports yourself.</p>` : importerTable(importers)}
</section>`;
    const seconds = isImporting ? importingRefreshSeconds : refreshSeconds;
    return { title: 'Overview', body, refresh: { seconds, isOn: query.values.refresh !== 'off' } };
  },
});

function importerProblems(importers: readonly ImporterState[]): Html[] {
  const problem = importerProblem(importers);
  if (problem === null) return [];
  return [
    html`<li><p>${shownText(problem, sentenceLength)} No scheduled import will run.</p>
<p class="next">Run next:</p>${commands([{ command: 'medref import', effect: 'imports what was missed' }])}</li>`,
  ];
}

/** How many clients a problem names. */
const maxNamed = 20;

/** Returns a problem for each collection whose rolled-back content clients still have. */
async function rolledBackProblems({
  redis,
  keyPrefix,
  served,
}: Pick<DashboardSources, 'redis' | 'keyPrefix' | 'served'>): Promise<Html[]> {
  const found = await Promise.all(
    served.map(async (it) => ({
      ...{ name: it.collection.name, numbers: await readRolledBack(redis, servedKeys(keyPrefix, it).keys) },
    })),
  ).catch(async (error) => {
    if (await damageIn(redis, error)) return []; // The state of the collections reports it.
    throw error;
  });
  if (found.every(({ numbers }) => numbers.length === 0)) return [];
  const clients = await listActiveClients(redis, keyPrefix, served);
  return found.flatMap(({ name, numbers }) => {
    const holders = clients.filter((it) => numbers.includes(it.versions[name]?.version ?? 0));
    if (holders.length === 0) return [];
    const named = holders.slice(0, maxNamed).map((it) => `${it.client} (${it.versions[name]?.version})`);
    const more = holders.length > maxNamed ? `, and ${holders.length - maxNamed} more` : '';
    return [
      html`<li><p><strong>${name}</strong>: ${holders.length === 1 ? 'A client has' : `${holders.length} clients have`} the content that was rolled back: ${shownText(named.join(', '), sentenceLength)}${more}.</p>
<p class="next">See <a href="clients">the versions of clients</a></p></li>`,
    ];
  });
}

function importerTable(importers: readonly ImporterState[]): Html {
  return table(
    'Importers, the last seen one first',
    ['Importer', 'State', 'Last seen', 'Next run', 'Schedule', 'Collections'],
    importers.map(({ importer, isAlive, stopped, seenAt, nextRun, cron, timezone, collections }) => [
      html`<span class="whole">${shownText(importer)}</span>`,
      isAlive
        ? html`<span class="badge published">running</span>`
        : stopped
          ? html`<span class="badge otherwise">stopped</span>`
          : html`<span class="badge failed">not seen</span>`,
      shownTime(seenAt),
      isAlive ? shownTime(nextRun) : none,
      html`<code class="whole">${shownText(cron)}</code> ${shownText(timezone)}`,
      shownText(collections.join(', ')),
    ]),
  );
}

function problemsOf({ collection, advice, lastImports, candidate }: CollectionStatus): Html[] {
  const hasRejects = (lastEnded(lastImports)?.rejected ?? 0) > 0;
  return advice.map(
    ({
      problem,
      details = [],
      run,
    }) => html`<li><p><strong>${collection}</strong>: ${shownText(problem, sentenceLength)}</p>
${details.map((line) => html`<p>${shownText(line, sentenceLength)}</p>`)}
${run.length > 0 ? html`<p class="next">Run next:</p>` : ''}${commands(run)}
<p class="next">See <a href="${pageLink('imports', { collection })}">imports of ${collection}</a>${
      hasRejects ? html`, <a href="${pageLink('rejects', { collection })}">rejects of ${collection}</a>` : ''
    }${
      candidate
        ? html`, <a href="${pageLink('candidate', { collection })}">the candidate of ${collection}</a>`
        : ''
    }</p></li>`,
  );
}

/** The word and the colour of a badge. */
const badges: Readonly<Record<LiveStatus, readonly [word: string, kind: string]>> = {
  ok: ['live', 'published'],
  missing: ['no version', 'otherwise'],
  incomplete: ['incomplete', 'failed'],
  damaged: ['damaged', 'failed'],
  'unknown format': ['unknown format', 'failed'],
};

/** Returns the word and the colour for the worst state of a collection. */
function stateOf({
  liveStatus,
  derivedFrom,
  damage,
  lastImports,
  stale,
  pause,
  candidate,
}: CollectionStatus) {
  if (liveStatus !== 'ok' || derivedFrom !== null) return badges[liveStatus];
  const outcome = lastEnded(lastImports)?.outcome;
  if (damage.length > 0) return badges.damaged;
  if (outcome === 'failed') return ['import failed', 'failed'] as const;
  if (outcome === 'refused') return ['import refused', 'refused'] as const;
  if (candidate && !candidate.outdated) return ['candidate waits', 'refused'] as const;
  if (stale) return ['stale', 'refused'] as const;
  return pause === null ? badges.ok : (['paused', 'refused'] as const);
}

function card(status: CollectionStatus, importers: readonly ImporterState[]): Html {
  const { collection, derivedFrom, live } = status;
  const [word, kind] = stateOf(status);
  const version = live
    ? html`<a href="${pageLink('versions', { collection })}">${live.version}</a>${live.forced ? html` <span class="badge otherwise">forced</span>` : ''}`
    : none;
  return html`<article class="card" aria-labelledby="collection-${collection}">
<h3 id="collection-${collection}">${collection} <span class="badge ${kind}">${word}</span></h3>
${facts([
  ['Live version', version],
  ['Published', live ? shownTime(live.publishedAt) : none],
  ['Records', live ? shownCount(live.totalCount) : none],
  ...(derivedFrom === null
    ? importFacts(status, nextImport(status, importers))
    : [['Derived from', derivedFrom] as const]),
])}
</article>`;
}

function nextImport({ collection, pause }: CollectionStatus, importers: readonly ImporterState[]): unknown {
  if (pause !== null) return 'paused';
  const next = nextRunOf(importers, collection);
  if (next !== null) return shownTime(next);
  return importers.some(({ isAlive }) => isAlive) ? 'not scheduled' : 'no importer runs';
}

function importFacts(
  { collection, checkedAt, lastImports, despite, lock, progress, pause, candidate, damage }: CollectionStatus,
  next: unknown,
): (readonly [string, unknown])[] {
  const last = lastEnded(lastImports);
  return [
    ['Last upstream check', checkedAt === null ? none : shownTime(checkedAt)],
    ['Last import', last ? html`${outcomeBadge(last.outcome)} ${shownTime(last.endedAt)}` : none],
    ...(despite.length === 0 ? [] : [['Published despite', despite.join(', ')] as const]),
    ['Next import', next],
    ['Lock', lock === null ? 'free' : html`${shownText(lock.holder)} since ${shownTime(lock.since)}`],
    ...(progress === null ? [] : [['In progress', progressText(progress)] as const]),
    [
      'Pause',
      pause === null ? 'no' : html`since ${shownTime(pause.since)}, after a rollback to ${pause.version}`,
    ],
    ...(candidate === null
      ? []
      : [
          [
            'Candidate',
            html`<a href="${pageLink('candidate', { collection })}">${candidate.version}</a>${candidate.outdated ? ' outdated' : html` since ${shownTime(candidate.madeAt)}`}`,
          ] as const,
        ]),
    ['Damage', damage.length === 0 ? 'none known' : html`<span class="wrong">${damage.length} found</span>`],
  ];
}

function progressText({ read, percent }: StoredProgress): Html {
  const bar =
    percent === null
      ? ''
      : html` <progress max="100" value="${percent}">${percent} %</progress> ${percent} %`;
  return html`${shownCount(read)} records read${bar}`;
}
