// Counts how full the records of a version are; checks compare it with the live version.

import type { Collection } from '../shared/collections/define.ts';
import type { Profile } from '../shared/store/versions.ts';
import { type Description, describe } from './validate.ts';

/** Counts while a version is written. */
export interface Profiler {
  add(record: unknown): void;
  profile(): Profile;
}

/** A member of a record, as the schema declares it. */
interface Member {
  /** JSON path, such as `$.product.name`. */
  readonly path: string;
  readonly isArray: boolean;
  readonly valueIn: (record: unknown) => unknown;
}

/**
 * Makes the profiler of a collection. A member is filled that is neither `null` nor `""` nor an empty array; the
 * elements of an array are counted, not looked into.
 */
export function createProfiler(collection: Collection): Profiler {
  const members = membersOf(describe(collection), '$', (record) => record);
  const filled = members.map(() => 0);
  const elements = members.map(() => 0);
  return {
    add: (record) => {
      members.forEach(({ valueIn, isArray }, i) => {
        const value = valueIn(record);
        const length = isArray ? (value as unknown[]).length : undefined;
        if (value !== null && value !== '' && length !== 0) filled[i] = (filled[i] as number) + 1;
        if (length !== undefined) elements[i] = (elements[i] as number) + length;
      });
    },
    profile: () => ({
      filled: Object.fromEntries(members.map(({ path }, i) => [path, filled[i] as number])),
      elements: Object.fromEntries(
        members.flatMap(({ path, isArray }, i) => (isArray ? [[path, elements[i] as number]] : [])),
      ),
    }),
  };
}

function membersOf(description: Description, path: string, valueIn: (record: unknown) => unknown): Member[] {
  if (!description.keys) return [{ path, isArray: description.type === 'array', valueIn }];
  return Object.entries(description.keys).flatMap(([name, member]) =>
    membersOf(member, `${path}.${name}`, (record) => (valueIn(record) as Record<string, unknown>)[name]),
  );
}
