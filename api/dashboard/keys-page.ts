// API keys: whom each was issued to, its life, and who did what to which; never a secret.

import { html } from 'hono/html';
import { type KeyEvent, lastKeyEvents } from '../../shared/key-events.ts';
import { isStillUsed, type ListedApiKey, listApiKeys } from '../../shared/store/api-keys.ts';
import type { PageDefinition } from './page-definition.ts';
import { pagesTake, readPage } from './page-parameters.ts';
import { pageLink, pageLinks, shownCount, shownTime, table } from './page-parts.ts';
import { shownText } from './shown-text.ts';

/** How many keys a page has. */
const perPage = 100;

/** How many events the first page has. */
const shownEvents = 50;

const headings = ['Client', 'Id', 'Created', 'Expires', 'Rate', 'Last used', 'Collections'];

export const keysPage: PageDefinition = {
  label: 'Keys',
  collections: 'none',
  takes: pagesTake,
  async render({ sources: { redis, keyPrefix, defaultRate }, parameters }) {
    const page = readPage(parameters);
    const [keys, events] = await Promise.all([
      listApiKeys(redis, keyPrefix),
      page === 1 ? lastKeyEvents(redis, keyPrefix, shownEvents) : [],
    ]);
    const shown = keys.slice((page - 1) * perPage, page * perPage);
    const list =
      keys.length === 0
        ? html`<p>There are no keys. Run <code>medref keys create --client NAME</code>.</p>`
        : html`<p>${shownCount(keys.length)} ${keys.length === 1 ? 'key' : 'keys'}, the oldest first. The keys themselves are stored nowhere.</p>
${table(
  'API keys',
  headings,
  shown.map((key) => row(key, defaultRate)),
)}
${pageLinks({ page, perPage, total: keys.length }, (it) => pageLink('keys', { page: it }))}`;
    const account = html`<h2>Who did what</h2>
${table('What was done to keys, the latest first', ['At', 'What', 'Key', 'Client', 'By'], events.map(eventRow))}`;
    return { title: 'Keys', body: events.length === 0 ? list : html`${list}\n${account}` };
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

function eventRow({ at, what, id, client, rotatedTo, by }: KeyEvent): readonly unknown[] {
  return [
    shownTime(at),
    rotatedTo ? html`${what} to ${shownId(rotatedTo)}` : what,
    shownId(id),
    shownText(client),
    shownText(`${by.user}@${by.host}`),
  ];
}

function shownId(id: string): unknown {
  return html`<code class="whole">${shownText(id, 40)}</code>`;
}
