// What a page of the dashboard is, and how it reads its parameters.

import type { ServedCollection } from '../../../shared/collections/define.ts';
import type { Redis } from '../../../shared/redis/connections.ts';
import {
  badParameter,
  countTakes,
  missingParameter,
  type Parameters,
  readCount,
  readParameters,
} from '../../query.ts';
import type { VersionComparison } from '../../read/compared-versions.ts';
import type { ReadModel } from '../../read/read-model.ts';
import type { Html } from './html.ts';

/** What the dashboard reads from, and the settings that it shows. */
export interface DashboardSources {
  /** Borrowed. */
  readonly redis: Redis;
  readonly keyPrefix: string;
  /** The rate of keys without a rate of their own; `undefined`: no limit. */
  readonly defaultRate: string | undefined;
  readonly served: readonly ServedCollection[];
  readonly readModel: ReadModel;
  readonly comparison: VersionComparison;
  readonly schedule: { readonly cron: string; readonly timezone: string };
  /** Returns whether the settings of this process name an upstream of the collection. */
  readonly isImported: (collection: string) => boolean;
}

/** A request for a page. */
export interface PageContext {
  readonly sources: DashboardSources;
  readonly parameters: Parameters;
}

/** The content of a page. */
export interface RenderedPage {
  readonly title: string;
  readonly body: Html;
  readonly collection?: string;
  /** 200 by default. */
  readonly status?: number;
}

/** A page of the dashboard. */
export interface PageDefinition {
  /** Label in the menu; absent: only other pages link to it. */
  readonly label?: string;
  /** Menu entry that the page belongs to; by default the page itself. */
  readonly parent?: string;
  /** The collections that the page can show. */
  readonly collections: 'none' | 'imported' | 'served';
  /** Parameters besides `collection`, each with what it accepts. */
  readonly accepts: Readonly<Record<string, string>>;
  /** @throws Boom, NoVersionError, VersionGoneError, errors of Redis */
  render(context: PageContext): Promise<RenderedPage>;
}

/** The parameter of lists with several pages. */
export const pageParameter = { page: countTakes } as const;

/** Reads the parameters of a page. Forms without a script send empty fields, so those count as absent. @throws Boom 400 */
export function readPageParameters(target: string, accepts: Readonly<Record<string, string>>): Parameters {
  const [path = '', ...query] = target.split('?');
  const given = query.join('?').split('&');
  const filled = given.filter((pair) => pair !== '' && !pair.endsWith('='));
  return readParameters(`${path}?${filled.join('&')}`, accepts);
}

/** Returns the requested page of a list, from 1. @throws Boom 400 */
export function readPage(parameters: Parameters): number {
  return readCount(parameters, 'page', 1);
}

/** Returns a parameter that the page requires. @throws Boom 400 */
export function requireParameter(parameters: Parameters, name: string, accepts: string): string {
  const text = parameters.get(name);
  if (text === undefined) throw missingParameter(name, accepts);
  return text;
}

/** Returns the collection that the request names, or the first that the page can show. @throws Boom 400 */
export function readCollection({ parameters, sources }: PageContext, page: PageDefinition): ServedCollection {
  const collections = collectionsOf(page, sources);
  const name = parameters.get('collection');
  const found = name === undefined ? collections[0] : collections.find((it) => it.collection.name === name);
  if (found) return found;
  const names = collections.map(({ collection }) => collection.name);
  throw badParameter('collection', 'is not a collection of this page', `one of ${names.join(', ')}`);
}

/** Returns the collections that a page can show. */
export function collectionsOf(
  { collections }: PageDefinition,
  { served }: DashboardSources,
): readonly ServedCollection[] {
  if (collections === 'none') return [];
  return collections === 'served' ? served : served.filter((it) => it.collection === it.source);
}
