// In: a record before and after. Out: which of its members differ.

import { isDeepStrictEqual } from 'node:util';

/** The members that differ between two records, by their names from the outside in, such as `product.name`. */
export function differingMembers(before: unknown, after: unknown, path = ''): string[] {
  if (!isObject(before) || !isObject(after)) return isDeepStrictEqual(before, after) ? [] : [path];
  return Object.keys(after).flatMap((name) =>
    differingMembers(before[name], after[name], path === '' ? name : `${path}.${name}`),
  );
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
