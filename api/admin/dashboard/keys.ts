// API keys: the client and the life of each; never a secret.

import { html } from 'hono/html';
import { isStillUsed, type ListedApiKey, listApiKeys } from '../../../shared/store/api-keys.ts';
import { type Html, pageLink, pageLinks, shownCount, shownText, shownTime, table } from './html.ts';
import { type PageDefinition, pageParameter, readPage } from './page.ts';

const perPage = 100;

const headings = ['Client', 'Id', 'Created', 'Expires', 'Rate', 'Last used', 'Collections'];

export const keysPage: PageDefinition = {
  label: 'Keys',
  collections: 'none',
  accepts: pageParameter,
  async render({ sources: { redis, keyPrefix, defaultRate }, parameters }) {
    const page = readPage(parameters);
    const keys = await listApiKeys(redis, keyPrefix);
    if (keys.length === 0)
      return {
        title: 'Keys',
        body: html`<p>No keys yet. Run <code>medref keys create --client NAME</code>.</p>`,
      };
    const rows = keys.slice((page - 1) * perPage, page * perPage).map((key) => row(key, defaultRate));
    const links = pageLinks({ page, perPage, total: keys.length }, (it) => pageLink('keys', { page: it }));
    const count = `${shownCount(keys.length)} ${keys.length === 1 ? 'key' : 'keys'}`;
    const body = html`<p>${count}, oldest first. medref stores no key in clear text.</p>
${table('API keys', headings, rows)}
${links}`;
    return { title: 'Keys', body };
  },
};

function row(key: ListedApiKey, defaultRate = 'no limit'): readonly unknown[] {
  const { id, client, createdAt, expiresAt, rate, collections, rotatedTo, lastUsedAt } = key;
  const isExpired = expiresAt !== null && Date.parse(expiresAt) <= Date.now();
  const used = lastUsedAt === null ? 'never' : shownTime(lastUsedAt);
  return [
    shownText(client),
    shownId(id),
    shownTime(createdAt),
    expiresAt === null
      ? 'never'
      : html`${isExpired ? html`<span class="badge failed">expired</span> ` : ''}${shownTime(expiresAt)}${rotatedTo ? html` rotated to ${shownId(rotatedTo)}` : ''}`,
    rate === null ? html`<span class="whole">${defaultRate}</span>` : shownText(rate, 40),
    isStillUsed(key) ? html`<span class="badge refused">still used</span> ${used}` : used,
    collections ? shownText(collections.join(', ')) : 'all',
  ];
}

function shownId(id: string): Html {
  return html`<code class="whole">${shownText(id, 40)}</code>`;
}
