// Records of a kept version: all of them in list order, or those with an id, a name that begins so, a barcode, a drug.

import { html, raw } from 'hono/html';
import type { Collection, ServedCollection } from '../../shared/collections/define.ts';
import { blockLines } from '../../shared/store/block.ts';
import type { Version } from '../../shared/store/versions.ts';
import type { ListRange, ReadModel } from '../reads/read-model.ts';
import type { ReadTarget } from '../reads/version-reads.ts';
import { pinParameter, readId, readPin } from '../requests/parameters.ts';
import { readSearch, searchParameters } from '../requests/search-parameters.ts';
import type { PageContext, PageDefinition } from './page-definition.ts';
import { pagesTake, readCollection, readPage } from './page-parameters.ts';
import { none, numbers, pageLink, pageLinks, shownCount, table } from './page-parts.ts';
import { listedRecord } from './record-words.ts';
import { type Html, shownText } from './shown-text.ts';

/** How many records a page has: few enough to be read one by one. */
const perPage = 40;

/** How many barcodes of a record a list shows. */
const maxBarcodes = 3;

/** By what records are found, and how a field for it is labelled; of those, what a collection can be searched by. */
const fields: Readonly<Record<string, string>> = {
  id: 'Id',
  name: 'Name begins with',
  barcode: 'Barcode',
  drug: 'Id of the drug',
};

export const browsePage: PageDefinition = {
  label: 'Browse',
  collections: 'served',
  takes: {
    ...{ id: 'digits 0-9 alone, from 1', name: 'the beginning of a name' },
    ...{ barcode: '12 or 13 digits, or 14 that begin with 0', drug: 'the id of a drug' },
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
    const { version, totalCount, records } = await findRecords(context, target, page);
    const asked = Object.fromEntries(
      Object.keys(fields).map((field) => [field, context.parameters.get(field)]),
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
  target: ReadTarget,
  page: number,
): Promise<Found> {
  const { readModel } = sources;
  const id = parameters.get('id');
  if (id !== undefined) return findById(readModel, target, readId(id));
  const span = { from: (page - 1) * perPage, count: perPage };
  const search = readSearch(parameters);
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

/** The first few barcodes, and how many more there are. */
function barcodeCell(barcodes: readonly string[]): Html {
  if (barcodes.length === 0) return none;
  const more = barcodes.length - maxBarcodes;
  return html`${barcodes.slice(0, maxBarcodes).map((it) => html`<span class="whole">${it}</span> `)}${more > 0 ? html`<small>and ${more} more</small>` : ''}`;
}

function searchForm(
  { parameters }: PageContext,
  { collection }: ServedCollection,
  kept: readonly Version[],
  { version: shown }: Version,
): Html {
  const takes = { id: '', ...searchParameters(collection) };
  const inputs = Object.entries(fields).filter(([field]) => Object.hasOwn(takes, field));
  return html`<form action="browse" method="get" class="asks" role="search" aria-label="Find records">
<input type="hidden" name="collection" value="${collection.name}">
<label>Version <select name="version">${kept.map(
    ({ version }) =>
      html`<option value="${version}"${version === shown ? raw(' selected') : ''}>${version}</option>`,
  )}</select></label>
${inputs.map(
  ([field, label]) =>
    html`<label>${label} <input name="${field}" value="${parameters.get(field) ?? ''}" autocomplete="off"></label>`,
)}
<button>Find</button></form>`;
}

function recordTable(collection: Collection, { version }: Version, records: readonly string[]): Html {
  const { barcodesOf } = collection;
  return table(
    `Records of version ${version}`,
    [numbers('Id'), 'Name', ...(barcodesOf ? ['Barcodes'] : [])],
    records.map((json) => {
      const { id, name, record } = listedRecord(collection, json);
      const barcodes = barcodesOf?.(record) ?? [];
      return [
        html`<a href="${pageLink('record', { collection: collection.name, id, version })}">${id}</a>`,
        shownText(name),
        ...(barcodesOf ? [barcodeCell(barcodes)] : []),
      ];
    }),
  );
}
