// The kept versions of a collection, and the differences between two of them.

import { html } from 'hono/html';
import { type ServedCollection, valueAt } from '../../../shared/collections/define.ts';
import { contentOf, type Version } from '../../../shared/store/versions.ts';
import { differingMembers } from '../../../shared/text.ts';
import { count, oneOf, required } from '../../query.ts';
import { type ChangeKind, changeKinds } from '../../read/changes.ts';
import type { ComparedRecord, ComparedVersions, MemberCounts } from '../../read/compared-versions.ts';
import type { ReadModel } from '../../read/read-model.ts';
import {
  type Html,
  none,
  numbers,
  pageLink,
  pageLinks,
  shownCount,
  shownText,
  shownTime,
  shownVersion,
  table,
  versionField,
  visible,
} from './html.ts';
import { definePage, type PageContext, pageParameter } from './page.ts';

/** Records on a page of differences. */
const perPage = 50;

/** Longer values are cut and not marked, in characters. */
const markedLength = 600;
const cutLength = 300;

export const versionsPage = definePage({
  label: 'Versions',
  collections: 'served',
  parameters: {},
  async render(context) {
    const { readModel } = context.sources;
    const { served } = context;
    const { name } = served.collection;
    const { version: live } = await readModel.target(served, undefined);
    const kept = await readModel.keptVersions(served);
    const body = html`${comparisonForm(name, kept, { from: kept[1]?.version, to: kept[0]?.version })}
${table(
  `Kept versions of ${name}, latest first`,
  ['Version', 'Published', 'Content of', numbers('Records'), 'Checksum', 'Compare'],
  kept.map(({ version, publishedAt, totalCount, checksum, forced, ...its }, n) => {
    const content = contentOf(its);
    const before = kept[n + 1]?.version;
    return [
      html`<a href="${pageLink('browse', { collection: name, version })}">${shownVersion(version)}</a>${
        version === live.version ? html` <span class="badge published">live</span>` : ''
      }${forced ? ' forced' : ''}`,
      shownTime(publishedAt),
      content === version ? 'itself' : shownVersion(content),
      shownCount(totalCount),
      html`<code>${checksum.slice(0, 12)}</code>`,
      before === undefined
        ? none
        : html`<a href="${pageLink('diff', { collection: name, from: before, to: version })}">with ${before}</a>`,
    ];
  }),
)}`;
    return { title: `Versions of ${name}`, collection: name, body };
  },
});

/** Returns a form that compares two versions, if two are kept. */
function comparisonForm(
  collection: string,
  kept: readonly Version[],
  { from, to }: { from: number | undefined; to: number | undefined },
): Html | '' {
  if (kept.length < 2) return '';
  return html`<form action="diff" method="get" class="asks" aria-label="Compare two versions">
<input type="hidden" name="collection" value="${collection}">
${versionField({ name: 'from', label: 'From version', selected: from }, kept)}
${versionField({ name: 'to', label: 'to version', selected: to }, kept)}
<button>Compare</button></form>`;
}

/** The parameters of pages that show differences. */
export const differenceParameters = { kind: oneOf(changeKinds), ...pageParameter } as const;

export const diffPage = definePage({
  parent: 'versions',
  collections: 'served',
  parameters: { from: required(count), to: required(count), ...differenceParameters },
  async render(context) {
    const { served, query } = context;
    const { readModel } = context.sources;
    const { name } = served.collection;
    const versions = await comparedVersions(readModel, served, query.values);
    const kept = await readModel.keptVersions(served);
    const [from, to] = [versions.from.version, versions.to.version];
    const body = html`${comparisonForm(name, kept, { from: from.version, to: to.version })}
<p>From version ${from.version}, published ${shownTime(from.publishedAt)}, to version ${to.version}, published ${shownTime(to.publishedAt)}.</p>
${await differences(context, versions, {
  shown: query.values,
  shownVersion: to.version,
  linkTo: (it) => pageLink('diff', { collection: name, from: from.version, to: to.version, ...it }),
})}`;
    return { title: `Differences in ${name}`, collection: name, body };
  },
});

/** Which differences a page shows, and its links. */
interface ShownDifferences {
  readonly shown: { readonly kind: ChangeKind | undefined; readonly page: number };
  /** The version whose records have a page; `null`: the later version is a candidate. */
  readonly shownVersion: number | null;
  readonly linkTo: (query: { kind: ChangeKind; page?: number }) => string;
}

/** Returns the differences between two versions: their counts, the changed fields, and a page of records of one kind. */
export async function differences(
  { served, sources: { comparison } }: Pick<PageContext, 'served' | 'sources'>,
  versions: ComparedVersions,
  { shown, shownVersion: version, linkTo }: ShownDifferences,
): Promise<Html> {
  const ids = await comparison.ids(versions);
  const counts = await comparison.memberCounts(versions);
  const kind = shown.kind ?? changeKinds.find((it) => ids[it].length > 0) ?? 'added';
  const { page } = shown;
  const records = await comparison.records(versions, ids[kind].slice((page - 1) * perPage, page * perPage));
  const total = ids[kind].length;
  return html`<nav class="tabs" aria-label="Kinds of change"><ul>${changeKinds.map(
    (it) =>
      html`<li><a href="${linkTo({ kind: it })}"${it === kind ? html` aria-current="page"` : ''}>${shownCount(ids[it].length)} ${it}</a></li>`,
  )}</ul></nav>
${memberTable(counts)}
<section aria-labelledby="records"><h2 id="records">Records ${kind}</h2>
${
  total === 0
    ? html`<p>No record was ${kind}.</p>`
    : kind === 'changed'
      ? changedRecords(served, version, records)
      : otherRecords(served, {
          kind,
          version: kind === 'added' ? version : versions.from.version.version,
          records,
        })
}
${pageLinks({ page, perPage, total }, (it) => linkTo({ kind, page: it }))}</section>`;
}

/** Returns the two versions, the earlier first, in whichever order they were named. @throws VersionGoneError */
async function comparedVersions(
  readModel: ReadModel,
  served: ServedCollection,
  { from: one, to: other }: { readonly from: number; readonly to: number },
): Promise<ComparedVersions> {
  const [from, to] = await Promise.all([
    readModel.target(served, Math.min(one, other)),
    readModel.target(served, Math.max(one, other)),
  ]);
  return { from, to };
}

function memberTable({ compared, changed, members }: MemberCounts): Html | '' {
  if (members.length === 0) return '';
  const part = compared < changed ? `the first ${shownCount(compared)} of ${shownCount(changed)}` : 'all';
  return table(
    `Changed fields in ${part} changed records`,
    ['Field', numbers('Records')],
    members.map(([name, records]) => [html`<code>${name}</code>`, shownCount(records)]),
  );
}

function otherRecords(
  { collection }: ServedCollection,
  {
    kind,
    version,
    records,
  }: { kind: ChangeKind; version: number | null; records: readonly ComparedRecord[] },
): Html {
  return table(
    `Records ${kind}, by id`,
    [numbers('Id'), 'Name'],
    records.map(({ id, before, after }) => {
      const json = before ?? after;
      return [
        recordLink(collection.name, id, version),
        json === null ? missingRecord : shownText(collection.nameOf(JSON.parse(json))),
      ];
    }),
  );
}

function changedRecords(
  { collection }: ServedCollection,
  version: number | null,
  records: readonly ComparedRecord[],
): Html {
  return html`${records.map(({ id, before, after }) => {
    const link = recordLink(collection.name, id, version);
    if (before === null || after === null) return html`<p>${link} ${missingRecord}</p>`;
    const [older, newer]: unknown[] = [JSON.parse(before), JSON.parse(after)];
    const rows = differingMembers(older, newer).map((member) => {
      const path = member.split('.');
      const marked = markedDifference(valueAt(older, path), valueAt(newer, path));
      return [html`<code>${member}</code>`, marked.before, marked.after];
    });
    return html`<article class="change" aria-labelledby="record-${id}">
<h3 id="record-${id}">${link} ${shownText(collection.nameOf(newer), 120)}</h3>
${table(`Changes of ${id}`, ['Field', 'Before', 'After'], rows)}</article>`;
  })}`;
}

const missingRecord = html`<em>Missing in Redis. Load the page again, or run medref verify.</em>`;

function recordLink(collection: string, id: string, version: number | null): Html | string {
  if (version === null) return id; // Only kept versions have pages.
  return html`<a href="${pageLink('record', { collection, id, version })}">${id}</a>`;
}

/** Marks everything between the common beginning and the common end of two values. */
export function markedDifference(before: unknown, after: unknown): { before: Html; after: Html } {
  const [old, now] = [textOf(before), textOf(after)];
  if (old === null || now === null || Math.max(old.length, now.length) > markedLength) {
    const cut = (text: string | null) => (text === null ? none : shownText(text, cutLength));
    return { before: cut(old), after: cut(now) };
  }
  const [was, is] = [[...old], [...now]];
  const shorter = Math.min(was.length, is.length);
  let start = 0;
  while (start < shorter && was[start] === is[start]) start += 1;
  let end = 0;
  while (end < shorter - start && was[was.length - 1 - end] === is[is.length - 1 - end]) end += 1;
  const marked = (characters: readonly string[], mark: (middle: (string | Html)[]) => Html) => {
    const [from, until] = [start, characters.length - end];
    const part = (a: number, b: number) => visible(characters.slice(a, b).join(''));
    const middle = until > from ? mark(part(from, until)) : '';
    return html`<bdi class="text">${part(0, from)}${middle}${part(until, characters.length)}</bdi>`;
  };
  return {
    before: marked(was, (it) => html`<del>${it}</del>`),
    after: marked(is, (it) => html`<ins>${it}</ins>`),
  };
}

/** Returns text as it is and everything else as JSON, or `null` if there is no value. */
function textOf(value: unknown): string | null {
  if (value === undefined || value === null) return null;
  return typeof value === 'string' ? value : JSON.stringify(value);
}
