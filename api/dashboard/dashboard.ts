// The dashboard: a table of its pages. In: what is asked for. Out: a page as HTML.

import { STATUS_CODES } from 'node:http';
import Boom from '@hapi/boom';
import { damageIn } from '../../shared/redis/damage.ts';
import { importsPage } from '../admin/dashboard/imports.ts';
import { keysPage } from '../admin/dashboard/keys.ts';
import { overviewPage } from '../admin/dashboard/overview.ts';
import type { DashboardSources, PageDefinition } from '../admin/dashboard/page.ts';
import { browsePage } from '../admin/dashboard/records.ts';
import { rejectsPage } from '../admin/dashboard/rejects.ts';
import { styleText } from '../admin/dashboard/style.ts';
import { diffPage } from '../admin/dashboard/versions.ts';
import { fixedAnswer } from '../answers/fixed-answer.ts';
import type { Trouble } from '../reads/trouble.ts';
import { importPage } from './import-page.ts';
import { errorBody, layout } from './layout.ts';
import { importedOf, namesOf, pageParameters } from './page-parameters.ts';
import { recordPage } from './record-page.ts';
import { versionsPage } from './versions-page.ts';

/** By their addresses. */
const pages: Readonly<Record<string, PageDefinition>> = {
  '': overviewPage,
  imports: importsPage,
  import: importPage,
  versions: versionsPage,
  diff: diffPage,
  browse: browsePage,
  record: recordPage,
  rejects: rejectsPage,
  keys: keysPage,
};

const entries = Object.entries(pages).flatMap(([name, { label }]) =>
  label === undefined ? [] : [{ name, label }],
);

/** Answers with the style sheet of all pages. */
export const styleSheet = fixedAnswer({ type: 'text/css; charset=utf-8', bytes: Buffer.from(styleText) });

/**
 * Makes a page.
 * @param asked the name of the page, and the target of the request
 * @throws Boom 404 for a page that there is not, and all that the page throws
 */
export async function renderPage(
  sources: DashboardSources,
  { name, target }: { readonly name: string; readonly target: string },
): Promise<{ readonly status: number; readonly text: string }> {
  const page = Object.hasOwn(pages, name) ? pages[name] : undefined;
  if (!page) throw Boom.notFound();
  const collections = collectionsOf(page, sources);
  const takes = {
    ...(collections.length > 0 && { collection: `one of ${collections.join(', ')}` }),
    ...page.takes,
  };
  const {
    title,
    body,
    collection,
    status = 200,
  } = await page.render({
    sources,
    parameters: pageParameters(target, takes),
  });
  const current = page.within ?? name;
  return { status, text: await layout({ title, body, pages: entries, current, collections, collection }) };
}

/** Makes the page of an error. */
export async function renderError(
  _sources: DashboardSources,
  { status, sentences }: { readonly status: number; readonly sentences: readonly string[] },
): Promise<string> {
  const title = STATUS_CODES[status] ?? 'Error';
  return layout({ title: `${status} ${title}`, body: errorBody(sentences), pages: entries });
}

/** What an error tells of a damaged key, as operators are told; `null` where it tells of something else. */
export async function damageTold({ redis }: DashboardSources, error: unknown): Promise<Trouble | null> {
  const damage = await damageIn(redis, error);
  if (!damage) return null;
  const message = `${damage.message} Run medref verify, or see docs/OPERATIONS.md, "A damaged key".`;
  return { cause: 'damaged', status: 503, message, retryAfter: null, reason: null };
}

function collectionsOf({ collections }: PageDefinition, { served }: DashboardSources): string[] {
  if (collections === 'none') return [];
  return namesOf(collections === 'imported' ? importedOf(served) : served);
}
