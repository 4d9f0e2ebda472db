// The records that the last import rejected: totals by path and reason, and each record with the fault marked.

import { hash } from 'node:crypto';
import { html } from 'hono/html';
import { findNodeAtLocation, parseTree } from 'jsonc-parser';
import { lastEnded } from '../../../shared/collection-status.ts';
import {
  causeOf,
  type LastRejects,
  type Reject,
  type RejectCause,
  readHistory,
  readLastRejects,
} from '../../../shared/import-history.ts';
import type { Redis } from '../../../shared/redis/connections.ts';
import { type CollectionKeys, collectionKeys } from '../../../shared/store/keys.ts';
import { badParameter, parameter } from '../../query.ts';
import {
  type Html,
  numbers,
  pageLink,
  pageLinks,
  sentenceLength,
  shownCount,
  shownText,
  shownTime,
  table,
  visible,
} from './html.ts';
import { nextSteps, outcomeBadge } from './imports.ts';
import { definePage, pageParameter } from './page.ts';

/** Rejects on a page. */
const perPage = 25;

/** Groups in the table: those with the most rejects. */
const maxGroups = 50;

/** How much of a record is shown around the fault, and of the fault, in characters. */
const around = 120;
const markedLength = 300;

const groupAccepts = 'a group that the table of this page links to';

export const rejectsPage = definePage({
  label: 'Rejects',
  collections: 'imported',
  parameters: { group: parameter(groupAccepts, (text) => text), ...pageParameter },
  async render(context) {
    const { redis, keyPrefix } = context.sources;
    const { source } = context.served;
    const { name } = source;
    const title = `Rejects of ${name}`;
    const keys = collectionKeys(keyPrefix, source);
    const last = await readLastRejects(redis, keys);
    if (last.endedAt === null)
      return { title, collection: name, body: html`<p>No import of ${name} has read records yet.</p>` };
    const { total, rejects } = last;
    const part = rejects.length < total ? ` medref keeps the first ${shownCount(rejects.length)}.` : '';
    const body = html`<p>The import of ${name} that ended at ${shownTime(last.endedAt)} rejected ${shownCount(total)} ${total === 1 ? 'record' : 'records'}.${part}</p>
${await outcomeOf(redis, keys, last)}
${rejects.length === 0 ? '' : listing(name, last, context.query.values)}`;
    return { title, collection: name, body };
  },
});

/** Returns the outcome of the import with these rejects, if the history still has it. */
async function outcomeOf(redis: Redis, keys: CollectionKeys, { endedAt }: LastRejects): Promise<Html | ''> {
  const history = await readHistory(redis, keys, 10);
  const report = history.find((it) => it.endedAt === endedAt);
  if (!report) return '';
  const reason = report.reason === null ? '' : html`: ${shownText(report.reason, sentenceLength)}`;
  return html`<p>Outcome: ${outcomeBadge(report.outcome)}${reason}</p>
${report === lastEnded(history) ? nextSteps(report) : ''}`;
}

/** Rejects with the same path and reason. */
interface Group {
  readonly name: string;
  readonly path: string;
  readonly reason: string;
  readonly rejects: Reject[];
  /** How many records had this cause, including records that are not kept. */
  readonly total: number;
}

function listing(
  collection: string,
  { rejects: all, causes }: LastRejects,
  { group: name, page }: { readonly group: string | undefined; readonly page: number },
): Html {
  const groups = groupsOf(all, causes);
  const group = groups.find((it) => it.name === name);
  if (name !== undefined && !group)
    throw badParameter('group', 'is not a group of the last import', groupAccepts);
  const rejects = group?.rejects ?? all;
  const linkTo = (it: number) => pageLink('rejects', { collection, group: name, page: it });
  return html`${table(
    groups.length > maxGroups ? `By path and reason: ${maxGroups} of ${groups.length}` : 'By path and reason',
    ['Path', 'Reason', numbers('Records')],
    groups
      .slice(0, maxGroups)
      .map((it) => [
        shownText(it.path),
        html`<a href="${pageLink('rejects', { collection, group: it.name })}">${shownText(it.reason)}</a>`,
        shownCount(it.total),
      ]),
  )}
<section aria-labelledby="records"><h2 id="records">${group ? 'Records of this group' : 'All records'}</h2>
${group ? html`<p><a href="${pageLink('rejects', { collection })}">All groups</a></p>` : ''}
<ol class="rejects">${rejects.slice((page - 1) * perPage, page * perPage).map(rejectItem)}</ol>
${pageLinks({ page, perPage, total: rejects.length }, linkTo)}</section>`;
}

/** Groups rejects by cause; the largest group comes first. */
function groupsOf(rejects: readonly Reject[], causes: readonly RejectCause[]): Group[] {
  const groups = new Map<string, Omit<Group, 'total'>>();
  for (const reject of rejects) {
    const { path, reason } = causeOf(reject);
    const name = hash('sha1', `${path} ${reason}`).slice(0, 12);
    const group = groups.get(name) ?? { name, path, reason, rejects: [] };
    group.rejects.push(reject);
    groups.set(name, group);
  }
  const totalOf = ({ path, reason, rejects: kept }: Omit<Group, 'total'>) =>
    causes.find((it) => it.path === path && it.reason === reason)?.count ?? kept.length;
  return [...groups.values()].map((it) => ({ ...it, total: totalOf(it) })).sort((a, b) => b.total - a.total);
}

function rejectItem({ position, path, reason, raw }: Reject): Html {
  return html`<li><h3>Position ${shownCount(position)}</h3>
<p><code>${shownText(path)}</code> ${shownText(reason, 500)}</p>
<pre class="raw"><code>${markedFault(raw, path)}</code></pre></li>`;
}

/** Returns the text around the fault with the fault marked, or the beginning of the record if the path leads nowhere. */
function markedFault(raw: string, path: string): Html {
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

/** A step of a JSON path: `.name`, `[3]`, or `["the name"]`. */
const step = /\.([A-Za-z_][A-Za-z0-9_]*)|\[(\d+)\]|\[("(?:[^"\\]|\\.)*")\]/y;

/** Returns the place that a JSON path leads to in a record, which may be truncated or invalid JSON; `null` if there is none. */
export function placeOf(raw: string, path: string): { from: number; until: number } | null {
  const steps: (string | number)[] = [];
  step.lastIndex = 1;
  while (step.lastIndex < path.length) {
    const found = step.exec(path);
    if (!found) return null; // The path is truncated.
    const [, name, index, quoted] = found;
    if (index !== undefined) steps.push(Number(index));
    else steps.push(name ?? (JSON.parse(quoted as string) as string));
  }
  const root = steps.length > 0 && parseTree(raw, [], { disallowComments: true });
  const node = root && findNodeAtLocation(root, steps);
  return node ? { from: node.offset, until: node.offset + node.length } : null;
}
