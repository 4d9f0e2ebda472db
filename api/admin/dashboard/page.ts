// The definition of a dashboard page, and its parameters.

import type { ServedCollection } from '../../../shared/collections/define.ts';
import type { Redis } from '../../../shared/redis/connections.ts';
import { oneOf, type Parameters, paging, type Query, queryReader, type Values } from '../../query.ts';
import type { VersionComparison } from '../../read/compared-versions.ts';
import type { ReadModel } from '../../read/read-model.ts';
import type { Html, Instance } from './html.ts';

/** The sources of the dashboard, and the settings that it shows. */
export interface DashboardSources {
  /** Borrowed. */
  readonly redis: Redis;
  readonly keyPrefix: string;
  /** The rate of keys without a rate of their own; `undefined`: no limit. */
  readonly defaultRate: string | undefined;
  readonly served: readonly ServedCollection[];
  readonly readModel: ReadModel;
  readonly comparison: VersionComparison;
  /** What the header shows of this process. */
  readonly instance: Instance;
  /** Returns whether the settings of this process name an upstream of the collection. */
  readonly isImported: (collection: string) => boolean;
}

/** A request for a page. */
export interface PageContext<P extends Parameters = Parameters> {
  readonly sources: DashboardSources;
  /** The collection that the request names, or the first that the page can show. */
  readonly served: ServedCollection;
  readonly query: Query<P>;
}

/** The content of a page. */
export interface RenderedPage {
  readonly title: string;
  readonly body: Html;
  readonly collection?: string;
  /** 200 by default. */
  readonly status?: number;
  /** After how many seconds a browser loads the page again; absent: never. */
  readonly refresh?: { readonly seconds: number; readonly isOn: boolean };
}

/** A page of the dashboard. */
export interface PageDefinition<P extends Parameters = Parameters> {
  /** Label in the menu; absent: only other pages link to it. */
  readonly label?: string;
  /** Menu entry that the page belongs to; by default the page itself. */
  readonly parent?: string;
  /** The collections that the page can show. */
  readonly collections: 'none' | 'imported' | 'served';
  /** Parameters besides `collection`. */
  readonly parameters: P;
  /** @throws Boom, NoVersionError, VersionGoneError, errors of Redis */
  render(context: PageContext<P>): Promise<RenderedPage>;
}

/** Makes a page, whose `render` gets the values of its parameters. */
export function definePage<P extends Parameters>(page: PageDefinition<P>): PageDefinition {
  return page as unknown as PageDefinition;
}

/** The parameter that stops the automatic refresh. */
export const refreshParameter = { refresh: oneOf(['on', 'off']) } as const;

/** The parameter of lists with several pages. */
export const pageParameter = { page: paging.page } as const;

/** Reads a request for a page. Forms without a script send empty fields, so those count as absent. @throws Boom 400 */
export function readContext(page: PageDefinition, sources: DashboardSources, target: string): PageContext {
  const collections = collectionsOf(page, sources);
  const names = collections.map(({ collection }) => collection.name);
  const [path = '', ...query] = target.split('?');
  const given = query.join('?').split('&');
  const filled = given.filter((pair) => pair !== '' && !pair.endsWith('='));
  const parameters = { ...(names.length > 0 && { collection: oneOf(names) }), ...page.parameters };
  const read = queryReader<Parameters>(parameters)(`${path}?${filled.join('&')}`);
  const { collection: name = names[0] } = read.values as Values<Parameters> & { collection?: string };
  const served = collections.find(({ collection }) => collection.name === name) as ServedCollection;
  return { sources, served, query: read };
}

/** Returns the collections that a page can show. */
export function collectionsOf(
  { collections }: PageDefinition,
  { served }: DashboardSources,
): readonly ServedCollection[] {
  if (collections === 'none') return [];
  return collections === 'served' ? served : served.filter((it) => it.collection === it.source);
}
