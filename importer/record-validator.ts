// In: one value as it came from upstream. Out: the record as JSON text in its public shape, or the reason to reject it.

import type { Collection } from '../shared/collections/collection.ts';
import { judgement } from '../shared/collections/rules.ts';

/** What the validator says of one value. */
export type Verdict =
  | {
      readonly valid: true;
      readonly id: number;
      /** In its public shape, and as the JSON text of it. */
      readonly record: unknown;
      readonly json: string;
      readonly unknownMembers: readonly string[];
    }
  | { readonly valid: false; readonly path: string; readonly reason: string };

/** Builds the public shape of a valid value: declared members in declared order, and tells which others there were. */
type Shaper = (value: unknown, path: string, unknownMembers: string[]) => unknown;

/**
 * Makes the validator of a collection.
 * @returns a function from a parsed JSON value, which it leaves as it is, to its {@link Verdict}; it throws nothing.
 */
export function createValidator(collection: Collection): (value: unknown) => Verdict {
  const shape = shaperOf(collection.schema.describe() as Description);
  // Told once: told with each value, the rules would be put together for each.
  const schema = collection.schema.prefs(judgement);
  return (source) => {
    const value = collection.accept ? collection.accept(source) : source;
    const { error } = schema.validate(value);
    const detail = error?.details[0];
    if (detail) return { valid: false, path: jsonPath(detail.path), reason: detail.message.trim() };
    const unknownMembers: string[] = [];
    const record = shape(value, '$', unknownMembers);
    const json = JSON.stringify(record);
    return { valid: true, id: idOf(collection, record), record, json, unknownMembers };
  };
}

/** The JSON path (RFC 9535) of a collection's id, such as `$.product.id`. */
export function idJsonPath(collection: Collection): string {
  return jsonPath(collection.idPath);
}

interface Description {
  type: string;
  keys?: Record<string, Description>;
  items?: Description[];
}

function shaperOf(description: Description): Shaper {
  if (description.keys) return objectShaper(Object.entries(description.keys));
  const item = description.items?.[0];
  if (item) return arrayShaper(shaperOf(item));
  return (value) => value;
}

function objectShaper(keys: [string, Description][]): Shaper {
  const members = keys.map(([name, description]) => [name, shaperOf(description)] as const);
  const declared = new Set(members.map(([name]) => name));
  return (value, path, unknownMembers) => {
    const source = value as Record<string, unknown>;
    const shaped: Record<string, unknown> = {};
    for (const [name, shape] of members)
      shaped[name] = shape(source[name], `${path}.${name}`, unknownMembers);
    const names = Object.keys(source);
    if (names.length > members.length) {
      unknownMembers.push(
        ...names.filter((name) => !declared.has(name)).map((name) => path + jsonMember(name)),
      );
    }
    return shaped;
  };
}

function arrayShaper(item: Shaper): Shaper {
  return (value, path, unknownMembers) =>
    (value as unknown[]).map((element) => item(element, `${path}[*]`, unknownMembers));
}

function idOf(collection: Collection, record: unknown): number {
  return collection.idPath.reduce(
    (value, member) => (value as Record<string, unknown>)[member],
    record,
  ) as number;
}

function jsonPath(path: readonly (string | number)[]): string {
  return `$${path.map((step) => (typeof step === 'number' ? `[${step}]` : jsonMember(step))).join('')}`;
}

function jsonMember(name: string): string {
  return /^[A-Za-z_][A-Za-z0-9_]*$/.test(name) ? `.${name}` : `[${JSON.stringify(name)}]`;
}
