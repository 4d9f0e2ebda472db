// API keys: the client of each and its life; never a secret.

import { html } from 'hono/html';
import { isStillUsed, type ListedApiKey, listApiKeys } from '../../../shared/store/api-keys.ts';
import { pagesTake, readPage } from '../../dashboard/page-parameters.ts';
import { shownText } from '../../dashboard/shown-text.ts';
import { pageLink, pageLinks, shownCount, shownTime, table } from './html.ts';
import type { PageDefinition } from './page.ts';

/** How many keys a page has. */
const perPage = 100;

const headings = ['Client', 'Id', 'Created', 'Expires', 'Rate', 'Last used', 'Collections'];

export const keysPage: PageDefinition = {
  label: 'Keys',
  collections: 'none',
  takes: pagesTake,
  async render({ sources: { redis, keyPrefix, defaultRate }, parameters }) {
    const page = readPage(parameters);
    const keys = await listApiKeys(redis, keyPrefix);
    const shown = keys.slice((page - 1) * perPage, page * perPage);
    const body =
      keys.length === 0
        ? html`<p>There are no keys. Run <code>medref keys create --client NAME</code>.</p>`
        : html`<p>${shownCount(keys.length)} ${keys.length === 1 ? 'key' : 'keys'}, the oldest first. The keys themselves are stored nowhere.</p>
${table(
  'API keys',
  headings,
  shown.map((key) => row(key, defaultRate)),
)}
${pageLinks({ page, perPage, total: keys.length }, (it) => pageLink('keys', { page: it }))}`;
    return { title: 'Keys', body };
  },
};

function row(key: ListedApiKey, defaultRate = 'no limit'): readonly unknown[] {
  const { id, client, createdAt, expiresAt, rate, collections, rotatedTo, lastUsedAt } = key;
  const isOver = expiresAt !== null && Date.parse(expiresAt) <= Date.now();
  const used = lastUsedAt === null ? 'never' : shownTime(lastUsedAt);
  return [
    shownText(client),
    shownId(id),
    shownTime(createdAt),
    expiresAt === null
      ? 'never'
      : html`${isOver ? html`<span class="badge failed">expired</span> ` : ''}${shownTime(expiresAt)}${rotatedTo ? html` rotated to ${shownId(rotatedTo)}` : ''}`,
    rate === null ? html`<span class="whole">${defaultRate}</span>` : shownText(rate, 40),
    isStillUsed(key) ? html`<span class="badge refused">still used</span> ${used}` : used,
    collections ? shownText(collections.join(', ')) : 'all',
  ];
}

function shownId(id: string): unknown {
  return html`<code class="whole">${shownText(id, 40)}</code>`;
}
