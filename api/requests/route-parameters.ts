// Which parameters each route takes: what it reads, and what /openapi.json tells of it.

import type { Collection } from '../../shared/collections/define.ts';
import { pagingParameters } from './paging.ts';
import { countTakes, pinParameter, waitParameter } from './parameters.ts';
import { idsParameter, searchParameters } from './search-parameters.ts';

/** What parameters take, by their names. */
export type TakenParameters = Readonly<Record<string, string>>;

/** Those of a list, of a search in it, and of some of its records by their ids. */
export function listParameters(collection: Collection): TakenParameters {
  return { ...searchParameters(collection), ...otherListParameters };
}

/** Those of every list. */
export const otherListParameters: TakenParameters = { ...idsParameter, ...pinParameter, ...pagingParameters };

/** Those of a whole list as lines. */
export const lineParameters: TakenParameters = pinParameter;

export const recordParameters: TakenParameters = pinParameter;

export const changeParameters: TakenParameters = {
  ...{ since: countTakes, ...waitParameter },
  ...{ ...pinParameter, ...pagingParameters },
};

export const versionParameters: TakenParameters = pagingParameters;
