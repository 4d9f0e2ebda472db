// API keys: whom each was issued to, and its life; never a secret.

import { html } from 'hono/html';
import { type ListedApiKey, listApiKeys } from '../../shared/api-keys.ts';
import type { PageDefinition } from './page-definition.ts';
import { pagesTake, readPage } from './page-parameters.ts';
import { pageLink, pageLinks, shownCount, shownTime, table } from './page-parts.ts';
import { shownText } from './shown-text.ts';

/** How many keys a page has. */
const perPage = 100;

export const keysPage: PageDefinition = {
  label: 'Keys',
  collections: 'none',
  takes: pagesTake,
  async render({ sources: { redis, keyPrefix }, parameters }) {
    const keys = await listApiKeys(redis, keyPrefix);
    const page = readPage(parameters);
    const shown = keys.slice((page - 1) * perPage, page * perPage);
    const body =
      keys.length === 0
        ? html`<p>There are no keys. Run <code>medref keys create --client NAME</code>.</p>`
        : html`<p>${shownCount(keys.length)} ${keys.length === 1 ? 'key' : 'keys'}, the oldest first. The keys themselves are stored nowhere.</p>
${table('API keys', ['Client', 'Id', 'Created', 'Expires', 'Rate', 'Last used'], shown.map(row))}
${pageLinks({ page, perPage, total: keys.length }, (it) => pageLink('keys', { page: it }))}`;
    return { title: 'Keys', body };
  },
};

function row({ id, client, createdAt, expiresAt, rate, lastUsedAt }: ListedApiKey): readonly unknown[] {
  const isOver = expiresAt !== null && Date.parse(expiresAt) <= Date.now();
  return [
    shownText(client),
    html`<code class="whole">${shownText(id, 40)}</code>`,
    shownTime(createdAt),
    expiresAt === null
      ? 'never'
      : html`${isOver ? html`<span class="badge failed">expired</span> ` : ''}${shownTime(expiresAt)}`,
    rate === null ? html`<span class="whole">no limit</span>` : shownText(rate, 40),
    lastUsedAt === null ? 'never' : shownTime(lastUsedAt),
  ];
}
