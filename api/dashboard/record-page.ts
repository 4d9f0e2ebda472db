// One record of a kept version: in words, as JSON, and which versions changed it.

import { html, raw } from 'hono/html';
import type { ServedCollection } from '../../shared/collections/define.ts';
import { printableJson } from '../../shared/escapes.ts';
import { servedKeys } from '../../shared/store/keys.ts';
import type { Version } from '../../shared/store/versions.ts';
import { none, pageLink, shownTime, shownVersion, table } from '../admin/dashboard/html.ts';
import type { PageDefinition } from '../admin/dashboard/page.ts';
import { type RecordHistory, readRecordHistory } from '../read/changes.ts';
import { missingParameter, pinParameter, readId, readPin } from '../requests/parameters.ts';
import { readCollection } from './page-parameters.ts';
import { listedRecord, recordInWords } from './record-words.ts';
import { type Html, shownText } from './shown-text.ts';

/** Longer JSON is folded, in characters. */
const maxOpenJson = 4_000;

const idTakes = 'digits 0-9 alone, from 1';

export const recordPage: PageDefinition = {
  within: 'browse',
  collections: 'served',
  takes: { id: idTakes, ...pinParameter },
  async render(context) {
    const { redis, keyPrefix, readModel, served } = context.sources;
    const its = readCollection(context, served);
    const { name } = its.collection;
    const asked = context.parameters.get('id');
    if (asked === undefined) throw missingParameter('id', idTakes);
    const id = readId(asked);
    const target = await readModel.target(its, readPin(context.parameters));
    const kept = await readModel.keptVersions(its);
    const { version, record } = await readModel.byId(target, id);
    const history = await readRecordHistory(redis, servedKeys(keyPrefix, its), id);
    const json = record?.toString();
    const body = html`<form action="record" method="get" class="asks" aria-label="The same record in another version">
<input type="hidden" name="collection" value="${name}"><input type="hidden" name="id" value="${id}">
<label>Version <select name="version">${kept.map(
      (it) =>
        html`<option value="${it.version}"${it.version === version.version ? raw(' selected') : ''}>${it.version}</option>`,
    )}</select></label> <button>Show</button></form>
${
  json === undefined
    ? html`<p>Version ${version.version} of ${name} has no record with the id ${id}.</p>`
    : html`<p class="name">${shownText(listedRecord(its.collection, json).name)}</p>
${linkToSource(its, id, version)}
<section aria-labelledby="words"><h2 id="words">In words</h2>${recordInWords(JSON.parse(json))}</section>
<section aria-labelledby="json"><h2 id="json">As JSON</h2>
${shownJson(json)}</section>`
}
${historyTable(history, { name, id, kept: kept.map((it) => it.version) })}`;
    const status = json === undefined ? 404 : 200;
    return { title: `Record ${id} of ${name}`, collection: name, status, body };
  },
};

/** Links from a drug to the products that have it. */
function linkToSource({ collection, source }: ServedCollection, id: string, { version }: Version): Html {
  if (collection === source || !source.exactSearches[collection.singular]) return html``;
  const link = pageLink('browse', { collection: source.name, [collection.singular]: id, version });
  return html`<p><a href="${link}">The ${source.name} that have it</a></p>`;
}

/** The JSON text over several lines, folded where it is long. */
function shownJson(json: string): Html {
  const lines = printableJson(JSON.stringify(JSON.parse(json), null, 2), { lines: true });
  const block = html`<div class="scroll" role="region" aria-labelledby="json" tabindex="0"><pre><code>${lines}</code></pre></div>`;
  if (lines.length <= maxOpenJson) return block;
  return html`<details><summary>${lines.length.toLocaleString('en')} characters</summary>${block}</details>`;
}

function historyTable(
  { changes, since }: RecordHistory,
  { name, id, kept }: { name: string; id: string; kept: readonly number[] },
): Html {
  const body =
    changes.length === 0
      ? html`<p>No version has changed it${since === null ? '' : html` since version ${since}`}, as far back as changes are kept.</p>`
      : table(
          'Versions that changed it, latest first',
          ['Version', 'Its import began', 'What became of it'],
          changes.map(({ version, change }) => [
            kept.includes(version)
              ? html`<a href="${pageLink('record', { collection: name, id, version })}">${shownVersion(version)}</a>`
              : shownVersion(version),
            timeOf(version),
            change,
          ]),
        );
  return html`<section aria-labelledby="history"><h2 id="history">In which versions it changed</h2>${body}</section>`;
}

/** The time that a number of a version tells, `YYYYMMDDhhmmss`; one that was one more than the last may tell of a 61st second. */
function timeOf(version: number): Html {
  const [, ...parts] = /^(\d{4})(\d\d)(\d\d)(\d\d)(\d\d)(\d\d)$/.exec(String(version)) ?? [];
  const [year = Number.NaN, month = 1, ...rest] = parts.map(Number);
  const time = new Date(Date.UTC(year, month - 1, ...rest));
  return Number.isNaN(time.getTime()) ? none : shownTime(time);
}
