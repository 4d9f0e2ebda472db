// The first page: problems with the commands that help, then the state of each collection.

import { html } from 'hono/html';
import {
  type CollectionStatus,
  evaluate,
  type LiveStatus,
  readCollectionStates,
} from '../../../shared/collection-status.ts';
import { dueTimes, longestGapMs } from '../../../shared/cron.ts';
import { isStillUsed, type ListedApiKey, listApiKeys } from '../../../shared/store/api-keys.ts';
import {
  commands,
  facts,
  type Html,
  none,
  pageLink,
  pageLinks,
  sentenceLength,
  shownCount,
  shownText,
  shownTime,
  table,
} from './html.ts';
import { outcomeBadge } from './imports.ts';
import { definePage, pageParameter } from './page.ts';

/** How much longer than the longest gap of the schedule an upstream check may take to come, in ms. */
const graceMs = 3_600_000;

export const overviewPage = definePage({
  label: 'Overview',
  collections: 'none',
  parameters: {},
  async render({ sources: { redis, keyPrefix, served, schedule, isImported } }) {
    const { cron, timezone } = schedule;
    const maxAgeSeconds = (longestGapMs(cron, timezone) + graceMs) / 1_000;
    const states = await readCollectionStates({ redis, keyPrefix, served });
    const all = states.map((state) =>
      evaluate(state, { maxAgeSeconds, maxAgeOf: 'the schedule', isImported: isImported(state.collection) }),
    );
    const problems = all.flatMap(problemsOf);
    const next = dueTimes(cron, timezone)();
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
<div class="cards">${all.map((it) => card(it, next))}</div>
<p>Schedule of this process: <code>${cron}</code> (${timezone}).</p>
</section>`;
    return { title: 'Overview', body };
  },
});

function problemsOf({ collection, advice }: CollectionStatus): Html[] {
  return advice.map(
    ({
      problem,
      run,
    }) => html`<li><p><strong>${collection}</strong>: ${shownText(problem, sentenceLength)}</p>
${run.length > 0 ? html`<p class="next">Run next:</p>` : ''}${commands(run)}
<p class="next">See <a href="${pageLink('imports', { collection })}">imports of ${collection}</a>,
<a href="${pageLink('rejects', { collection })}">rejects of ${collection}</a></p></li>`,
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

function card(status: CollectionStatus, next: Date): Html {
  const { collection, derivedFrom, live, liveStatus } = status;
  const [word, kind] = badges[liveStatus];
  const version = live
    ? html`<a href="${pageLink('versions', { collection })}">${live.version}</a>${live.forced ? html` <span class="badge otherwise">forced</span>` : ''}`
    : none;
  return html`<article class="card" aria-labelledby="collection-${collection}">
<h3 id="collection-${collection}">${collection} <span class="badge ${kind}">${word}</span></h3>
${facts([
  ['Live version', version],
  ['Published', live ? shownTime(live.publishedAt) : none],
  ['Records', live ? shownCount(live.totalCount) : none],
  ...(derivedFrom === null ? importFacts(status, next) : [['Derived from', derivedFrom] as const]),
])}
</article>`;
}

function importFacts(
  { checkedAt, lastImports: [last], lock, pause, damage }: CollectionStatus,
  next: Date,
): (readonly [string, unknown])[] {
  return [
    ['Last upstream check', checkedAt === null ? none : shownTime(checkedAt)],
    ['Last import', last ? html`${outcomeBadge(last.outcome)} ${shownTime(last.endedAt)}` : none],
    ['Next import', pause === null ? shownTime(next) : 'paused'],
    ['Lock', lock === null ? 'free' : html`${shownText(lock.holder)} since ${shownTime(lock.since)}`],
    [
      'Pause',
      pause === null ? 'no' : html`since ${shownTime(pause.since)}, after a rollback to ${pause.version}`,
    ],
    ['Damage', damage.length === 0 ? 'none known' : html`<span class="wrong">${damage.length} found</span>`],
  ];
}

const perPage = 100;

const headings = ['Client', 'Id', 'Created', 'Expires', 'Rate', 'Last used', 'Collections'];

export const keysPage = definePage({
  label: 'Keys',
  collections: 'none',
  parameters: pageParameter,
  async render({ sources: { redis, keyPrefix, defaultRate }, query }) {
    const { page } = query.values;
    const keys = await listApiKeys(redis, keyPrefix);
    if (keys.length === 0)
      return {
        title: 'Keys',
        body: html`<p>No keys yet. Run <code>medref keys create --client NAME</code>.</p>`,
      };
    const rows = keys.slice((page - 1) * perPage, page * perPage).map((key) => row(key, defaultRate));
    const links = pageLinks({ page, perPage, total: keys.length }, (it) => pageLink('keys', { page: it }));
    const count = `${shownCount(keys.length)} ${keys.length === 1 ? 'key' : 'keys'}`;
    const body = html`<p>${count}, oldest first. medref stores no key in clear text.</p>
${table('API keys', headings, rows)}
${links}`;
    return { title: 'Keys', body };
  },
});

function row(key: ListedApiKey, defaultRate = 'no limit'): readonly unknown[] {
  const { id, client, createdAt, expiresAt, rate, collections, rotatedTo, lastUsedAt } = key;
  const isExpired = expiresAt !== null && Date.parse(expiresAt) <= Date.now();
  const used = lastUsedAt === null ? 'never' : shownTime(lastUsedAt);
  return [
    shownText(client),
    shownId(id),
    shownTime(createdAt),
    expiresAt === null
      ? 'never'
      : html`${isExpired ? html`<span class="badge failed">expired</span> ` : ''}${shownTime(expiresAt)}${rotatedTo ? html` rotated to ${shownId(rotatedTo)}` : ''}`,
    rate === null ? html`<span class="whole">${defaultRate}</span>` : shownText(rate, 40),
    isStillUsed(key) ? html`<span class="badge refused">still used</span> ${used}` : used,
    collections ? shownText(collections.join(', ')) : 'all',
  ];
}

function shownId(id: string): Html {
  return html`<code class="whole">${shownText(id, 40)}</code>`;
}
