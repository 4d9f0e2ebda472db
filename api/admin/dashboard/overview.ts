// The first page: what is wrong, and what to do about it; then what stands of each collection.

import { html } from 'hono/html';
import { type Asked, adviceOnAll } from '../../../shared/advice.ts';
import { type CollectionState, readState } from '../../../shared/collection-state.ts';
import type { ServedCollection } from '../../../shared/collections/define.ts';
import { dueTimes, longestGapMs } from '../../../shared/cron.ts';
import { damageIn } from '../../../shared/redis/damage.ts';
import { outcomeBadge } from '../../dashboard/import-words.ts';
import { type Html, shownText } from '../../dashboard/shown-text.ts';
import { commands, facts, none, pageLink, shownCount, shownTime } from './html.ts';
import type { DashboardSources, PageDefinition } from './page.ts';

/** How much longer than the schedule's longest gap upstream may not have been found as it is live, in ms. */
const graceMs = 3_600_000;

/** A collection, or what keeps its state from being read. */
interface Seen {
  readonly served: ServedCollection;
  readonly state: CollectionState | null;
  /** A sentence. */
  readonly damage: string | null;
}

interface Problem {
  readonly collection: string;
  readonly problem: string;
  readonly run: readonly string[];
}

export const overviewPage: PageDefinition = {
  label: 'Overview',
  collections: 'none',
  takes: {},
  async render({ sources }) {
    const { served, schedule } = sources;
    const all = await Promise.all(served.map((it) => see(sources, it)));
    const problems = problemsOf(all, sources);
    const next = dueTimes(schedule.cron, schedule.timezone)();
    const body = html`<section aria-labelledby="wrong">
<h2 id="wrong">${problems.length === 0 ? 'Nothing is wrong' : 'What is wrong'}</h2>
${
  problems.length === 0
    ? html`<p class="calm">Each collection that is imported is live, and its last import was neither refused nor failed.</p>`
    : html`<ol class="problems">${problems.map(problemItem)}</ol>`
}
</section>
<section aria-labelledby="collections">
<h2 id="collections">Collections</h2>
<div class="cards">${all.map((it) => card(it, next))}</div>
<p>The schedule <code>${schedule.cron}</code> (${schedule.timezone}) is that of the settings of this process.</p>
</section>`;
    return { title: 'Overview', body };
  },
};

/** What is damaged of one collection hides no other. */
async function see({ redis, keyPrefix }: DashboardSources, served: ServedCollection): Promise<Seen> {
  try {
    return { served, state: await readState(redis, keyPrefix, served), damage: null };
  } catch (error) {
    const damage = await damageIn(redis, error);
    if (!damage) throw error;
    return { served, state: null, damage: damage.message };
  }
}

function problemsOf(all: readonly Seen[], { schedule, isImported }: DashboardSources): readonly Problem[] {
  const maxAgeSeconds = (longestGapMs(schedule.cron, schedule.timezone) + graceMs) / 1_000;
  const damaged = all.flatMap(({ served: { collection, source }, damage }): Problem[] => {
    if (damage === null || collection !== source) return [];
    const { name } = collection;
    return [{ collection: name, problem: damage, run: [`medref verify ${name}`, `medref import ${name}`] }];
  });
  const judged = all.flatMap(({ state }) => {
    if (!state) return [];
    const asked: Asked = {
      maxAgeSeconds,
      maxAgeOf: 'the schedule',
      isImported: isImported(state.collection),
    };
    return [{ state, asked }];
  });
  return [...damaged, ...adviceOnAll(judged)];
}

function problemItem({ collection, problem, run }: Problem): Html {
  return html`<li><p><strong>${collection}</strong>: ${shownText(problem, 2_000)}</p>
${run.length > 0 ? html`<p class="next">Run next:</p>` : ''}${commands(run)}
<p class="next">Look at <a href="${pageLink('imports', { collection })}">imports of ${collection}</a>,
<a href="${pageLink('rejects', { collection })}">rejects of ${collection}</a></p></li>`;
}

function card({ served: { collection, source }, state, damage }: Seen, next: Date): Html {
  const { name } = collection;
  const id = `collection-${name}`;
  const heading = (status: string, kind: string) =>
    html`<h3 id="${id}">${name} <span class="badge ${kind}">${status}</span></h3>`;
  if (!state)
    return html`<article class="card" aria-labelledby="${id}">${heading('damaged', 'failed')}<p>${shownText(damage ?? '', 500)}</p></article>`;
  const { live, checkedAt, lastImports, lock, hold, damage: marks } = state;
  const last = lastImports[0];
  const own = collection === source;
  const version = live
    ? html`<a href="${pageLink('versions', { collection: name })}">${live.version}</a>${live.forced ? ' (forced past the checks)' : ''}`
    : none;
  return html`<article class="card" aria-labelledby="${id}">
${live ? heading('live', 'published') : heading('nothing live', 'otherwise')}
${facts([
  ['Live version', version],
  ['Became live', live ? shownTime(live.publishedAt) : none],
  [
    'Records',
    live
      ? html`<a href="${pageLink('browse', { collection: name })}">${shownCount(live.totalCount)}</a>`
      : none,
  ],
  ...(own
    ? ([
        ['Upstream found as it is live', checkedAt === null ? none : shownTime(checkedAt)],
        ['Last import', last ? html`${outcomeBadge(last.outcome)} ${shownTime(last.endedAt)}` : none],
        ['Next run', hold === null ? shownTime(next) : 'held'],
        ['Lock', lock === null ? 'free' : html`${shownText(lock.holder)} since ${shownTime(lock.since)}`],
        [
          'Hold',
          hold === null ? 'no' : html`since ${shownTime(hold.since)}, after a rollback to ${hold.version}`,
        ],
        [
          'Damage',
          marks.length === 0 ? 'none found' : html`<span class="wrong">${marks.length} contents</span>`,
        ],
      ] as const)
    : ([['Comes and goes with', source.name]] as const)),
])}
</article>`;
}
