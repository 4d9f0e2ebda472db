// The API keys, and the version that each client has of each collection.

import { html } from 'hono/html';
import { isStillUsed, type ListedApiKey, listApiKeys } from '../../../shared/store/api-keys.ts';
import { isActive, listClients } from '../../../shared/store/client-versions.ts';
import {
  type Html,
  pageLink,
  pageLinks,
  shownCount,
  shownText,
  shownTime,
  shownVersion,
  table,
} from './html.ts';
import { definePage, pageParameter } from './page.ts';

/** Keys or versions on a page. */
const perPage = 100;

const headings = ['Client', 'Id', 'Created', 'Expires', 'Rate', 'Last used', 'Collections'];

export const keysPage = definePage({
  label: 'Keys',
  collections: 'none',
  parameters: pageParameter,
  async render({ sources: { redis, keyPrefix, defaultRate }, query }) {
    const { page } = query.values;
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
});

export const clientsPage = definePage({
  label: 'Clients',
  collections: 'none',
  parameters: pageParameter,
  async render({ sources: { redis, keyPrefix, served }, query }) {
    const { page } = query.values;
    const clients = (await listClients(redis, keyPrefix, served)).filter(isActive);
    const all = clients.flatMap(({ client, id, versions }) =>
      Object.entries(versions).map(([collection, its]) => ({ client, id, collection, ...its })),
    );
    all.sort((a, b) => b.behind - a.behind);
    const title = 'Clients';
    if (all.length === 0)
      return {
        title,
        body: html`<p>No client has read a whole collection yet: as NDJSON, or by its changes to the last page.</p>`,
      };
    const rows = all
      .slice((page - 1) * perPage, page * perPage)
      .map((it) => [
        shownText(it.client),
        html`<span class="whole">${it.collection}</span>`,
        shownVersion(it.version),
        it.behind === 0
          ? html`<span class="badge published">live</span>`
          : html`<span class="badge refused">${shownCount(it.behind)} behind</span>`,
        html`<span class="whole">${it.isVerified ? 'verified' : 'only served'}</span>`,
        shownTime((it.isVerified ? it.verifiedAt : it.servedAt) as string),
        shownId(it.id),
      ]);
    const behind = all.filter((it) => it.behind > 0).length;
    const body = html`<p>${shownCount(behind)} of ${shownCount(all.length)} copies are behind the live version. <em>Verified</em>: the client reported the digest of this version; <em>only served</em>: it was sent.</p>
${table('Versions of clients, those furthest behind first', ['Client', 'Collection', 'Version', 'State', 'Proof', 'Last', 'Key'], rows)}
${pageLinks({ page, perPage, total: all.length }, (it) => pageLink('clients', { page: it }))}`;
    return { title, body };
  },
});

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
