// What differs between two kept versions: how many records, in which members, and each record, page by page.

import { html } from 'hono/html';
import type { ServedCollection } from '../../../shared/collections/define.ts';
import { valueAt } from '../../../shared/collections/define.ts';
import { differingMembers } from '../../../shared/differing-members.ts';
import { markedDifference } from '../../dashboard/marked-difference.ts';
import { pagesTake, readCollection, readPage } from '../../dashboard/page-parameters.ts';
import { listedRecord } from '../../dashboard/record-words.ts';
import { type Html, shownText } from '../../dashboard/shown-text.ts';
import { comparisonForm } from '../../dashboard/versions-page.ts';
import { type ChangeKind, changeKinds } from '../../read/changes.ts';
import type { ComparedRecord, ComparedVersions, MemberCounts } from '../../reads/compared-versions.ts';
import { badParameter, countTakes, missingParameter, readCount } from '../../requests/parameters.ts';
import { numbers, pageLink, pageLinks, shownCount, shownTime, table } from './html.ts';
import type { PageContext, PageDefinition } from './page.ts';

/** How many records a page has. */
const perPage = 50;

const kindTakes = `one of ${changeKinds.join(', ')}`;

export const diffPage: PageDefinition = {
  within: 'versions',
  collections: 'served',
  takes: { from: countTakes, to: countTakes, kind: kindTakes, ...pagesTake },
  async render(context) {
    const { comparison, readModel, served } = context.sources;
    const its = readCollection(context, served);
    const { name } = its.collection;
    const versions = await comparedVersions(context, its);
    const kept = await readModel.keptVersions(its);
    const [from, to] = [versions.from.version, versions.to.version];
    const ids = await comparison.ids(versions);
    const counts = await comparison.memberCounts(versions);
    const kind = readKind(context) ?? changeKinds.find((it) => ids[it].length > 0) ?? 'added';
    const page = readPage(context.parameters);
    const records = await comparison.records(versions, ids[kind].slice((page - 1) * perPage, page * perPage));
    const linkTo = (asked: { kind: ChangeKind; page?: number }) =>
      pageLink('diff', { collection: name, from: from.version, to: to.version, ...asked });
    const total = ids[kind].length;
    const body = html`${comparisonForm(name, kept, [from.version, to.version])}
<p>From version ${from.version}, live since ${shownTime(from.publishedAt)}, to version ${to.version}, live since ${shownTime(to.publishedAt)}.</p>
<nav class="tabs" aria-label="What became of records"><ul>${changeKinds.map(
      (it) =>
        html`<li><a href="${linkTo({ kind: it })}"${it === kind ? html` aria-current="page"` : ''}>${shownCount(ids[it].length)} ${it}</a></li>`,
    )}</ul></nav>
${memberTable(counts)}
<section aria-labelledby="records"><h2 id="records">Records ${kind}</h2>
${
  total === 0
    ? html`<p>No record was ${kind}.</p>`
    : kind === 'changed'
      ? changedRecords(its, to.version, records)
      : oneSidedRecords(its, { kind, version: kind === 'added' ? to.version : from.version, records })
}
${pageLinks({ page, perPage, total }, (it) => linkTo({ kind, page: it }))}</section>`;
    return { title: `What differs in ${name}`, collection: name, body };
  },
};

/** The two versions, the earlier one first, whichever was named first. @throws Boom 400, VersionGoneError */
async function comparedVersions(
  { sources, parameters }: PageContext,
  its: ServedCollection,
): Promise<ComparedVersions> {
  const [one, other] = ['from', 'to'].map((name) => {
    const version = readCount(parameters, name, null);
    if (version === null) throw missingParameter(name, countTakes);
    return version;
  }) as [number, number];
  const [from, to] = await Promise.all([
    sources.readModel.target(its, Math.min(one, other)),
    sources.readModel.target(its, Math.max(one, other)),
  ]);
  return { from, to };
}

function readKind({ parameters }: PageContext): ChangeKind | null {
  const text = parameters.get('kind');
  if (text === undefined) return null;
  const kind = changeKinds.find((it) => it === text);
  if (kind) return kind;
  throw badParameter('kind', `is ${JSON.stringify(text)}`, kindTakes);
}

function memberTable({ compared, changed, members }: MemberCounts): Html | '' {
  if (members.length === 0) return '';
  const of = compared < changed ? `the first ${shownCount(compared)} of ${shownCount(changed)}` : 'all';
  return table(
    `Members that differ, in ${of} changed records`,
    ['Member', numbers('Records')],
    members.map(([name, records]) => [html`<code>${name}</code>`, shownCount(records)]),
  );
}

function oneSidedRecords(
  { collection }: ServedCollection,
  { kind, version, records }: { kind: ChangeKind; version: number; records: readonly ComparedRecord[] },
): Html {
  return table(
    `Records ${kind}, by id`,
    [numbers('Id'), 'Name'],
    records.map(({ id, before, after }) => {
      const json = before ?? after;
      return [
        recordLink(collection.name, id, version),
        json === null ? goneRecord : shownText(listedRecord(collection, json).name),
      ];
    }),
  );
}

function changedRecords(
  { collection }: ServedCollection,
  version: number,
  records: readonly ComparedRecord[],
): Html {
  return html`${records.map(({ id, before, after }) => {
    if (before === null || after === null)
      return html`<p>${recordLink(collection.name, id, version)} ${goneRecord}</p>`;
    const { name, record } = listedRecord(collection, after);
    const older: unknown = JSON.parse(before);
    const rows = differingMembers(older, record).map((member) => {
      const path = member.split('.');
      const marked = markedDifference(valueAt(older, path), valueAt(record, path));
      return [html`<code>${member}</code>`, marked.before, marked.after];
    });
    return html`<article class="change" aria-labelledby="record-${id}">
<h3 id="record-${id}">${recordLink(collection.name, id, version)} ${shownText(name, 120)}</h3>
${table(`What changed in ${id}`, ['Member', 'Before', 'After'], rows)}</article>`;
  })}`;
}

const goneRecord = html`<em>This record went away while it was read, or is damaged: load the page again, or run medref verify.</em>`;

function recordLink(collection: string, id: string, version: number): Html {
  return html`<a href="${pageLink('record', { collection, id, version })}">${id}</a>`;
}
