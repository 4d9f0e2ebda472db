// What the last import rejected: by path and reason, and each record with the text around what was wrong.

import { hash } from 'node:crypto';
import { html } from 'hono/html';
import { readHistory } from '../../../shared/ended-imports.ts';
import { type LastRejects, type Reject, readLastRejects } from '../../../shared/last-rejects.ts';
import type { Redis } from '../../../shared/redis/connections.ts';
import { type CollectionKeys, collectionKeys } from '../../../shared/store/keys.ts';
import { nextSteps, outcomeBadge } from '../../dashboard/import-words.ts';
import { importedOf, pagesTake, readCollection, readPage } from '../../dashboard/page-parameters.ts';
import { placeOf } from '../../dashboard/reject-place.ts';
import { type Html, shownText, visible } from '../../dashboard/shown-text.ts';
import { badParameter } from '../../requests/parameters.ts';
import { numbers, pageLink, pageLinks, shownCount, shownTime, table } from './html.ts';
import type { PageContext, PageDefinition } from './page.ts';

/** How many rejects a page has. */
const perPage = 25;

/** How many groups are shown: those with the most rejects. */
const maxGroups = 50;

/** How much is shown around what was wrong, and of it, in characters. */
const around = 120;
const markedLength = 300;

const groupTakes = 'what the table of this page links to';

/** Rejects of one kind. */
interface Group {
  readonly name: string;
  readonly path: string;
  readonly reason: string;
  readonly count: number;
}

export const rejectsPage: PageDefinition = {
  label: 'Rejects',
  collections: 'imported',
  takes: { group: groupTakes, ...pagesTake },
  async render(context) {
    const { redis, keyPrefix, served } = context.sources;
    const { source } = readCollection(context, importedOf(served));
    const { name } = source;
    const keys = collectionKeys(keyPrefix, source);
    const last = await readLastRejects(redis, keys);
    const title = `Rejects of ${name}`;
    if (last.endedAt === null)
      return { title, collection: name, body: html`<p>No import of ${name} has read anything yet.</p>` };
    const said = await verdict(redis, keys, last.endedAt);
    const isPart = last.rejects.length < last.total;
    const body = html`<p>The import of ${name} that ended at ${shownTime(last.endedAt)} rejected ${shownCount(last.total)} ${last.total === 1 ? 'record' : 'records'}${
      isPart ? `, the first ${shownCount(last.rejects.length)} of which are kept` : ''
    }.</p>
${said}
${last.rejects.length === 0 ? '' : listing(context, name, last)}`;
    return { title, collection: name, body };
  },
};

/** What the checks said of that import, and what to run next. */
async function verdict(redis: Redis, keys: CollectionKeys, endedAt: string): Promise<Html | ''> {
  const recent = await readHistory(redis, keys, 10);
  const report = recent.find((it) => it.endedAt === endedAt);
  if (!report) return '';
  return html`<p>It ended as ${outcomeBadge(report.outcome)}${report.reason === null ? '' : html`: ${shownText(report.reason, 2_000)}`}</p>
${nextSteps(report)}`;
}

function listing({ parameters }: PageContext, name: string, { rejects }: LastRejects): Html {
  const groups = groupsOf(rejects);
  const asked = parameters.get('group');
  if (asked !== undefined && !groups.some((group) => group.name === asked))
    throw badParameter('group', 'names none of the last import', groupTakes);
  const its = asked === undefined ? rejects : rejects.filter((reject) => groupName(reject) === asked);
  const page = readPage(parameters);
  const shown = its.slice((page - 1) * perPage, page * perPage);
  return html`${table(
    groups.length > maxGroups
      ? `The ${maxGroups} most frequent kinds of ${groups.length}`
      : 'By path and reason',
    ['Path', 'Reason', numbers('Records')],
    groups
      .slice(0, maxGroups)
      .map((group) => [
        shownText(group.path),
        html`<a href="${pageLink('rejects', { collection: name, group: group.name })}">${shownText(group.reason)}</a>`,
        shownCount(group.count),
      ]),
  )}
<section aria-labelledby="records"><h2 id="records">${asked === undefined ? 'Each record' : 'Records of one kind'}</h2>
${asked === undefined ? '' : html`<p><a href="${pageLink('rejects', { collection: name })}">All kinds</a></p>`}
<ol class="rejects">${shown.map(rejectItem)}</ol>
${pageLinks({ page, perPage, total: its.length }, (it) => pageLink('rejects', { collection: name, group: asked, page: it }))}</section>`;
}

/** The most frequent first. */
function groupsOf(rejects: readonly Reject[]): Group[] {
  const groups = new Map<string, Group>();
  for (const reject of rejects) {
    const name = groupName(reject);
    const count = (groups.get(name)?.count ?? 0) + 1;
    groups.set(name, { name, count, ...kindOf(reject) });
  }
  return [...groups.values()].sort((a, b) => b.count - a.count);
}

/** The same place in other records, and the same reason, whichever element or position it names. */
function kindOf({ path, reason }: Reject): { path: string; reason: string } {
  return { path: path.replace(/\[\d+\]/g, '[*]'), reason: reason.replace(/\bposition \d+/g, 'position …') };
}

function groupName(reject: Reject): string {
  const { path, reason } = kindOf(reject);
  return hash('sha1', `${path} ${reason}`).slice(0, 12);
}

function rejectItem({ position, path, reason, raw }: Reject): Html {
  return html`<li><h3>Position ${shownCount(position)}</h3>
<p><code>${shownText(path)}</code> ${shownText(reason, 500)}</p>
<pre class="raw"><code>${surroundings(raw, path)}</code></pre></li>`;
}

/** The text around what was wrong, with that marked; the beginning of the record where it is not there. */
function surroundings(raw: string, path: string): Html {
  const place = placeOf(raw, path);
  if (!place) return shownText(raw, 2 * around + markedLength);
  const from = Math.max(0, place.from - around);
  const end = Math.min(place.until, place.from + markedLength);
  const until = Math.min(raw.length, end + around);
  const isCut = end < place.until;
  return html`<bdi class="text">${from > 0 ? '…' : ''}${visible(raw.slice(from, place.from))}<mark>${visible(raw.slice(place.from, end))}${
    isCut ? '…' : ''
  }</mark>${isCut ? '' : visible(raw.slice(end, until))}${until < raw.length ? '…' : ''}</bdi>`;
}
