// What a page is: which parameters it takes, and how it is made of what Redis holds.

import type { ServedCollection } from '../../../shared/collections/define.ts';
import type { Redis } from '../../../shared/redis/connections.ts';
import type { Html } from '../../dashboard/shown-text.ts';
import type { ReadModel } from '../../read/read-model.ts';
import type { VersionComparison } from '../../reads/compared-versions.ts';
import type { Parameters } from '../../requests/parameters.ts';

/** What the dashboard reads from, and what it knows of the settings. */
export interface DashboardSources {
  /** Borrowed. */
  readonly redis: Redis;
  readonly keyPrefix: string;
  /** Of keys that have none of their own; `undefined`: no limit. */
  readonly defaultRate: string | undefined;
  readonly served: readonly ServedCollection[];
  readonly readModel: ReadModel;
  readonly comparison: VersionComparison;
  readonly schedule: { readonly cron: string; readonly timezone: string };
  /** Whether the settings of this process say where a collection comes from. */
  readonly isImported: (collection: string) => boolean;
}

/** What a page was asked. */
export interface PageContext {
  readonly sources: DashboardSources;
  readonly parameters: Parameters;
}

/** A page, but for what is around it. */
export interface RenderedPage {
  /** Also its heading. */
  readonly title: string;
  readonly body: Html;
  /** The collection it is about; others are offered beside it. */
  readonly collection?: string;
  /** 200, unless it is given. */
  readonly status?: number;
}

/** A page of the dashboard. */
export interface PageDefinition {
  /** How it is named among the pages; absent: it is reached from others alone. */
  readonly label?: string;
  /** The name of the page that it belongs to among those; itself, unless it is given. */
  readonly within?: string;
  /** Which collections it can be about. */
  readonly collections: 'none' | 'imported' | 'served';
  /** Parameters besides `collection`, and what each takes. */
  readonly takes: Readonly<Record<string, string>>;
  /** @throws Boom, NoVersionError, VersionGoneError, whatever the connection throws */
  render(context: PageContext): Promise<RenderedPage>;
}
