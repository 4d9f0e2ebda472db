// Records of a kept version: all of them in list order, or those with an id, a name that begins so, a barcode, a drug.

import { html, raw } from 'hono/html';
import { servedCollections } from '../../../shared/collections/collections.ts';
import type { Collection, ServedCollection } from '../../../shared/collections/define.ts';
import { blockLines } from '../../../shared/store/block.ts';
import type { Version } from '../../../shared/store/versions.ts';
import { pagesTake, readCollection, readPage } from '../../dashboard/page-parameters.ts';
import { listedRecord } from '../../dashboard/record-words.ts';
import { type Html, shownText } from '../../dashboard/shown-text.ts';
import type { ListRange, ReadModel } from '../../read/read-model.ts';
import type { ReadTarget } from '../../read/versions.ts';
import { pinParameter, readId, readPin } from '../../requests/parameters.ts';
import { readSearch, searchParameters } from '../../requests/search-parameters.ts';
import { none, numbers, pageLink, pageLinks, shownCount, table } from './html.ts';
import type { PageContext, PageDefinition } from './page.ts';

/** How many records a page has: few enough to be read one by one. */
const perPage = 40;

/** How many values of an exact search a list shows of a record. */
const maxValues = 3;

/** Returns a label: `Barcode` for `barcode`. */
function label(name: string): string {
  return name.charAt(0).toUpperCase() + name.slice(1);
}

/** Returns the searches of a collection with what each accepts, and `id`. */
function searchFields(collection: Collection): Readonly<Record<string, string>> {
  return { id: 'digits 0-9 alone, from 1', ...searchParameters(collection) };
}

export const browsePage: PageDefinition = {
  label: 'Browse',
  collections: 'served',
  takes: {
    ...Object.assign({}, ...servedCollections.map((served) => searchFields(served.collection))),
    ...pinParameter,
    ...pagesTake,
  },
  async render(context) {
    const { readModel, served } = context.sources;
    const its = readCollection(context, served);
    const { collection } = its;
    const target = await readModel.target(its, readPin(context.parameters));
    const kept = await readModel.keptVersions(its);
    const page = readPage(context.parameters);
    const { version, totalCount, records } = await findRecords(context, { collection, target, page });
    const asked = Object.fromEntries(
      Object.keys(searchFields(collection)).map((field) => [field, context.parameters.get(field)]),
    );
    const linkTo = (it: number) =>
      pageLink('browse', { collection: collection.name, version: version.version, ...asked, page: it });
    const body = html`${searchForm(context, its, kept, version)}
<p>${shownCount(totalCount)} of ${shownCount(version.totalCount)} records of version ${version.version}.</p>
${records.length === 0 ? html`<p>No record is found so.</p>` : recordTable(collection, version, records)}
${pageLinks({ page, perPage, total: totalCount }, linkTo)}`;
    return { title: `Records of ${collection.name}`, collection: collection.name, body };
  },
};

interface Found {
  readonly version: Version;
  readonly totalCount: number;
  /** JSON texts. */
  readonly records: readonly string[];
}

async function findRecords(
  { sources, parameters }: PageContext,
  { collection, target, page }: { collection: Collection; target: ReadTarget; page: number },
): Promise<Found> {
  const { readModel } = sources;
  const id = parameters.get('id');
  if (id !== undefined) return findById(readModel, target, readId(id));
  const span = { from: (page - 1) * perPage, count: perPage };
  const search = readSearch(collection, parameters);
  if (search) {
    const { version, totalCount, records } = await readModel.search(target, search, span);
    return { version, totalCount, records: records.map(String) };
  }
  const range = await readModel.list(target, span);
  return { version: range.version, totalCount: range.version.totalCount, records: textsOf(range) };
}

async function findById(readModel: ReadModel, target: ReadTarget, id: string): Promise<Found> {
  const { version, record } = await readModel.byId(target, id);
  return { version, totalCount: record ? 1 : 0, records: record ? [record.toString()] : [] };
}

/** The records of a part of a list, however it was read. */
function textsOf({ part }: ListRange): string[] {
  if ('records' in part) return part.records.map(String);
  const { from, count } = part.span;
  const lines = Buffer.concat(part.blocks.map(blockLines)).toString().split('\n');
  return lines.slice(from, from + count);
}

/** Returns the first few values, and how many more there are. */
function valuesCell(values: readonly (string | number)[]): Html {
  if (values.length === 0) return none;
  const more = values.length - maxValues;
  return html`${values.slice(0, maxValues).map((it) => html`<span class="whole">${it}</span> `)}${more > 0 ? html`<small>and ${more} more</small>` : ''}`;
}

function searchForm(
  { parameters }: PageContext,
  { collection }: ServedCollection,
  kept: readonly Version[],
  { version: shown }: Version,
): Html {
  const fields = Object.keys(searchFields(collection));
  const labelOf = (field: string) =>
    collection.prefixSearches[field] ? `${label(field)} begins with` : label(field);
  return html`<form action="browse" method="get" class="asks" role="search" aria-label="Find records">
<input type="hidden" name="collection" value="${collection.name}">
<label>Version <select name="version">${kept.map(
    ({ version }) =>
      html`<option value="${version}"${version === shown ? raw(' selected') : ''}>${version}</option>`,
  )}</select></label>
${fields.map(
  (field) =>
    html`<label>${labelOf(field)} <input name="${field}" value="${parameters.get(field) ?? ''}" autocomplete="off"></label>`,
)}
<button>Find</button></form>`;
}

function recordTable(collection: Collection, { version }: Version, records: readonly string[]): Html {
  const columns = Object.entries(collection.exactSearches);
  return table(
    `Records of version ${version}`,
    [numbers('Id'), 'Name', ...columns.map(([name]) => label(name))],
    records.map((json) => {
      const { id, name, record } = listedRecord(collection, json);
      return [
        html`<a href="${pageLink('record', { collection: collection.name, id, version })}">${id}</a>`,
        shownText(name),
        ...columns.map(([, search]) => valuesCell(search.valuesOf(record))),
      ];
    }),
  );
}
