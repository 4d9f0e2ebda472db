// In: the target of a request for a page. Out: its parameters and what they mean. Forms without a script send fields that
// were left empty, so an empty one is as good as none.

import type { ServedCollection } from '../../shared/collections/define.ts';
import type { PageContext } from '../admin/dashboard/page.ts';
import {
  badParameter,
  countTakes,
  type Parameters,
  readCount,
  readParameters,
} from '../requests/parameters.ts';

/** Reads the parameters of a page. @throws Boom 400 */
export function pageParameters(target: string, takes: Readonly<Record<string, string>>): Parameters {
  const [path = '', ...query] = target.split('?');
  const given = query
    .join('?')
    .split('&')
    .filter((pair) => pair !== '' && !pair.endsWith('='));
  return readParameters(`${path}?${given.join('&')}`, takes);
}

/** The parameter of lists that have several pages. */
export const pagesTake = { page: countTakes } as const;

/** Which page of a list is asked for, from 1. @throws Boom 400 */
export function readPage(parameters: Parameters): number {
  return readCount(parameters, 'page', 1);
}

/** The collection that a page is about; the first one that it can be about, unless another is named. @throws Boom 400 */
export function readCollection(
  { parameters }: PageContext,
  among: readonly ServedCollection[],
): ServedCollection {
  const name = parameters.get('collection');
  const found = name === undefined ? among[0] : among.find(({ collection }) => collection.name === name);
  if (found) return found;
  throw badParameter('collection', 'names none of this page', `one of ${namesOf(among).join(', ')}`);
}

export function namesOf(served: readonly ServedCollection[]): string[] {
  return served.map(({ collection }) => collection.name);
}

/** Those that are imported themselves. */
export function importedOf(served: readonly ServedCollection[]): ServedCollection[] {
  return served.filter(({ collection, source }) => collection === source);
}
