// The records of a kept version: the list, searches, and one record with its history.

import { html } from 'hono/html';
import { servedCollections } from '../../../shared/collections/collections.ts';
import type { Collection, ServedCollection } from '../../../shared/collections/define.ts';
import { blockLines } from '../../../shared/store/block.ts';
import { servedKeys } from '../../../shared/store/keys.ts';
import type { Version } from '../../../shared/store/versions.ts';
import { escapeJson } from '../../../shared/text.ts';
import {
  idOf,
  isWrong,
  type Parameters,
  parameter,
  pin,
  required,
  searchOf,
  searchParameters,
} from '../../query.ts';
import { type RecordHistory, readRecordHistory } from '../../read/changes.ts';
import type { ListRange, ReadModel } from '../../read/read-model.ts';
import type { ReadTarget } from '../../read/versions.ts';
import {
  facts,
  type Html,
  none,
  numbers,
  pageLink,
  pageLinks,
  sentenceLength,
  shownCount,
  shownText,
  shownTime,
  shownVersion,
  table,
  versionField,
} from './html.ts';
import { definePage, pageParameter } from './page.ts';

/** Records on a page. */
const perPage = 40;

/** Values of an exact search that the list shows of one record. */
const maxValues = 3;

/** Elements of an array that the page of a record shows; the JSON has all. */
const maxElements = 200;

const idParameter = parameter('digits 0-9 alone, from 1', (text) => idOf(text) ?? isWrong(text));

/** Returns `id` and the searches of a collection. */
function searchFields(collection: Collection): Parameters {
  return { id: idParameter, ...searchParameters(collection) };
}

export const browsePage = definePage({
  label: 'Browse',
  collections: 'served',
  parameters: {
    ...(Object.assign(
      {},
      ...servedCollections.map((served) => searchFields(served.collection)),
    ) as Parameters),
    ...pin,
    ...pageParameter,
  },
  async render(context) {
    const { sources, served } = context;
    const { values, given } = context.query;
    const { collection } = served;
    const { name } = collection;
    const target = await sources.readModel.target(served, values.version);
    const kept = await sources.readModel.keptVersions(served);
    const { page } = values;
    const { version, totalCount, records } = await findRecords(sources.readModel, values, {
      collection,
      target,
      page,
    });
    const fields = Object.keys(searchFields(collection));
    const query = Object.fromEntries(fields.map((field) => [field, given[field]]));
    const linkTo = (it: number) =>
      pageLink('browse', { collection: name, version: version.version, ...query, page: it });
    const inputs = fields.map((field) => {
      const label = collection.prefixSearches[field]
        ? `${capitalized(field)} starts with`
        : capitalized(field);
      return html`<label>${label} <input name="${field}" value="${query[field] ?? ''}" autocomplete="off"></label>`;
    });
    const body = html`<form action="browse" method="get" class="asks" role="search" aria-label="Find records">
<input type="hidden" name="collection" value="${name}">
${versionField({ name: 'version', label: 'Version', selected: version.version }, kept)}
${inputs}
<button>Find</button></form>
<p>${shownCount(totalCount)} of ${shownCount(version.totalCount)} records of version ${version.version}.</p>
${records.length === 0 ? html`<p>No matching records.</p>` : recordTable(collection, version, records)}
${pageLinks({ page, perPage, total: totalCount }, linkTo)}`;
    return { title: `Records of ${name}`, collection: name, body };
  },
});

interface Found {
  readonly version: Version;
  readonly totalCount: number;
  /** JSON texts. */
  readonly records: readonly string[];
}

async function findRecords(
  readModel: ReadModel,
  values: Readonly<Record<string, unknown>>,
  { collection, target, page }: { collection: Collection; target: ReadTarget; page: number },
): Promise<Found> {
  const { id } = values;
  if (typeof id === 'string') {
    const { version, record } = await readModel.byId(target, id);
    return { version, totalCount: record ? 1 : 0, records: record ? [record.toString()] : [] };
  }
  const span = { from: (page - 1) * perPage, count: perPage };
  const search = searchOf(collection, values);
  if (search) {
    const { version, totalCount, records } = await readModel.search(target, search, span);
    return { version, totalCount, records: records.map(String) };
  }
  const range = await readModel.list(target, span);
  return { version: range.version, totalCount: range.version.totalCount, records: textsOf(range) };
}

/** Returns the records of a part of a list, from single records or from blocks. */
function textsOf({ part }: ListRange): string[] {
  if ('records' in part) return part.records.map(String);
  const { from, count } = part.span;
  const lines = Buffer.concat(part.blocks.map(blockLines)).toString().split('\n');
  return lines.slice(from, from + count);
}

function recordTable(collection: Collection, { version }: Version, records: readonly string[]): Html {
  const searches = Object.entries(collection.exactSearches);
  return table(
    `Records of version ${version}`,
    [numbers('Id'), 'Name', ...searches.map(([name]) => capitalized(name))],
    records.map((json) => {
      const record: unknown = JSON.parse(json);
      const id = collection.idOf(record);
      return [
        html`<a href="${pageLink('record', { collection: collection.name, id, version })}">${id}</a>`,
        shownText(collection.nameOf(record)),
        ...searches.map(([, search]) => valuesCell(search.valuesOf(record))),
      ];
    }),
  );
}

function valuesCell(values: readonly (string | number)[]): Html {
  if (values.length === 0) return none;
  const more = values.length - maxValues;
  return html`${values.slice(0, maxValues).map((it) => html`<span class="whole">${it}</span> `)}${more > 0 ? html`<small>and ${more} more</small>` : ''}`;
}

function capitalized(name: string): string {
  return name.charAt(0).toUpperCase() + name.slice(1);
}

export const recordPage = definePage({
  parent: 'browse',
  collections: 'served',
  parameters: { id: required(idParameter), ...pin },
  async render(context) {
    const { redis, keyPrefix, readModel } = context.sources;
    const { served } = context;
    const { name } = served.collection;
    const { id, version: pinned } = context.query.values;
    const target = await readModel.target(served, pinned);
    const kept = await readModel.keptVersions(served);
    const { version, record } = await readModel.byId(target, id);
    const history = await readRecordHistory(redis, servedKeys(keyPrefix, served), id);
    const body = html`<form action="record" method="get" class="asks" aria-label="Show another version">
<input type="hidden" name="collection" value="${name}"><input type="hidden" name="id" value="${id}">
${versionField({ name: 'version', label: 'Version', selected: version.version }, kept)} <button>Show</button></form>
${
  record
    ? recordBody(served, { id, version, record: JSON.parse(record.toString()) })
    : html`<p>Version ${version.version} of ${name} has no record with the id ${id}.</p>`
}
${historySection(history, { name, id, kept: kept.map((it) => it.version) })}`;
    return { title: `Record ${id} of ${name}`, collection: name, status: record ? 200 : 404, body };
  },
});

function recordBody(
  { collection, source }: ServedCollection,
  { id, version: { version }, record }: { id: string; version: Version; record: unknown },
): Html {
  const json = escapeJson(JSON.stringify(record, null, 2), { lines: true });
  const isDerived = collection !== source && source.exactSearches[collection.singular] !== undefined;
  const link = pageLink('browse', { collection: source.name, [collection.singular]: id, version });
  return html`<p class="name">${shownText(collection.nameOf(record), sentenceLength)}</p>
${isDerived ? html`<p><a href="${link}">${capitalized(source.name)} of this ${collection.singular}</a></p>` : ''}
<section aria-labelledby="fields"><h2 id="fields">Fields</h2>${fieldsOf(record)}</section>
<h2 id="json">JSON</h2>
<div class="scroll" role="region" aria-labelledby="json" tabindex="0"><pre><code>${json}</code></pre></div>`;
}

/** Returns the fields of a record with their values, and a table for each array of objects. */
function fieldsOf(record: unknown): Html {
  const plain: [string, unknown][] = [];
  const tables: Html[] = [];
  const visit = (value: unknown, path: string) => {
    if (isArrayOfObjects(value)) tables.push(arrayTable(path, value));
    else if (typeof value === 'object' && value !== null && !Array.isArray(value))
      for (const [name, member] of Object.entries(value)) visit(member, `${path} ${name}`.trim());
    else plain.push([path, shownValue(value)]);
  };
  visit(record, '');
  return html`${facts(plain)}
${tables}`;
}

function isArrayOfObjects(value: unknown): value is Record<string, unknown>[] {
  return (
    Array.isArray(value) && value.length > 0 && value.every((it) => typeof it === 'object' && it !== null)
  );
}

function arrayTable(name: string, elements: readonly Record<string, unknown>[]): Html {
  const shown = elements.slice(0, maxElements);
  const members = [...new Set(shown.flatMap((it) => Object.keys(it)))];
  const rows = shown.map((it) => members.map((member) => shownValue(it[member])));
  const more = elements.length - shown.length;
  return html`${table(`${name} (${elements.length})`, members, rows)}
${more > 0 ? html`<p>${more} more are in the JSON below.</p>` : ''}`;
}

function shownValue(value: unknown): Html | string {
  if (value === undefined) return none;
  if (value === null) return html`<span class="none">none</span>`;
  if (value === '') return html`<span class="none">empty</span>`;
  if (typeof value === 'boolean') return value ? 'yes' : 'no';
  return shownText(typeof value === 'string' ? value : JSON.stringify(value), sentenceLength);
}

function historySection(
  { changes, since }: RecordHistory,
  { name, id, kept }: { name: string; id: string; kept: readonly number[] },
): Html {
  const rows = changes.map(({ version, change }) => [
    kept.includes(version)
      ? html`<a href="${pageLink('record', { collection: name, id, version })}">${shownVersion(version)}</a>`
      : shownVersion(version),
    timeOf(version),
    change,
  ]);
  const body =
    rows.length === 0
      ? html`<p>No changes${since === null ? '' : html` since version ${since}`}, as far as medref keeps changes.</p>`
      : table('Changes, latest first', ['Version', 'Import started', 'Change'], rows);
  return html`<section aria-labelledby="history"><h2 id="history">History</h2>${body}</section>`;
}

/** Returns the time in a version number, `YYYYMMDDhhmmss`; "last number + 1" may name second 60. */
function timeOf(version: number): Html {
  const [, ...parts] = /^(\d{4})(\d\d)(\d\d)(\d\d)(\d\d)(\d\d)$/.exec(String(version)) ?? [];
  const [year = Number.NaN, month = 1, ...rest] = parts.map(Number);
  const time = new Date(Date.UTC(year, month - 1, ...rest));
  return Number.isNaN(time.getTime()) ? none : shownTime(time);
}
