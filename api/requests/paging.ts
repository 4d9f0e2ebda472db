// The page of a list that a request asks for.

import { countTakes, type Parameters, readCount } from './parameters.ts';

/** The most records of a page. */
export const maxPerPage = 200;

/** The page a request asks for. */
export interface PageRequest {
  /** From 1; may lie beyond the last. */
  readonly page: number;
  /** From 1 to 200. */
  readonly perPage: number;
}

/** The parameters of paging and what they take. */
export const pagingParameters = { page: countTakes, 'per-page': countTakes } as const;

/** The page that the parameters ask for; `per-page` is reduced to 200. @throws Boom 400 */
export function readPageRequest(parameters: Parameters): PageRequest {
  return {
    page: readCount(parameters, 'page', 1),
    perPage: Math.min(maxPerPage, readCount(parameters, 'per-page', maxPerPage)),
  };
}
