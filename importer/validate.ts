// Validates one value from upstream: returns the record as JSON text in its public shape, or the reason to reject it.

import type { Collection } from '../shared/collections/define.ts';
import { judgement } from '../shared/collections/rules.ts';
import { jsonPath, memberStep } from './parse/values.ts';

/** A value that the schema declares, with its members or the elements that it may have (Joi's own description). */
export interface Description {
  readonly type: string;
  /** The members of an object, in the order in which they are served. */
  readonly keys?: Readonly<Record<string, Description>>;
  /** What an element of an array is; one description. */
  readonly items?: readonly Description[];
}

/** Returns the description of a collection's records. */
export function describe({ schema }: Collection): Description {
  return schema.describe() as Description;
}

/** How long a record may be, as UTF-8 bytes of its JSON text: a page of 200 is held in memory several times. */
export const maxRecordBytes = 256 * 1024;

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

/** Whether a valid value has the public shape: the declared members in declared order, and no others. */
type ShapeTest = (value: unknown) => boolean;

/** Builds the public shape of a valid value that does not have it, and tells which other members there were. */
type Shaper = (value: unknown, path: string, unknownMembers: string[]) => unknown;

/**
 * Makes the validator of a collection.
 * @returns a function from a parsed JSON value, which it leaves as it is, to its {@link Verdict}; it throws nothing.
 */
export function createValidator(collection: Collection): (value: unknown) => Verdict {
  const description = describe(collection);
  const isShaped = shapeTestOf(description);
  const shape = shaperOf(description);
  // Told once: told with each value, the rules would be put together for each.
  const schema = collection.schema.prefs(judgement);
  return (source) => {
    const value = collection.accept ? collection.accept(source) : source;
    const { error } = schema.validate(value);
    const detail = error?.details[0];
    if (detail) return { valid: false, path: jsonPath(detail.path), reason: detail.message.trim() };
    const unknownMembers: string[] = [];
    const record = isShaped(value) ? value : shape(value, '$', unknownMembers);
    const json = JSON.stringify(record);
    const tooLong = lengthReason(json);
    if (tooLong) return { valid: false, path: '$', reason: tooLong };
    const id = collection.idOf(record);
    return { valid: true, id, record, json, unknownMembers };
  };
}

/** Why a record is too long, or `null`. */
function lengthReason(json: string): string | null {
  // Most are so short that none of their characters can make them too long: one is at most three bytes.
  if (json.length * 3 <= maxRecordBytes) return null;
  const length = Buffer.byteLength(json);
  return length > maxRecordBytes
    ? `is ${length} bytes of JSON text, where at most ${maxRecordBytes} are allowed`
    : null;
}

function shapeTestOf({ keys, items }: Description): ShapeTest {
  if (keys) {
    const names = Object.keys(keys);
    const tests = Object.values(keys).map(shapeTestOf);
    return (value) => {
      let n = 0;
      for (const name in value as object) {
        if (name !== names[n] || !tests[n]?.((value as Record<string, unknown>)[name])) return false;
        n += 1;
      }
      return n === names.length;
    };
  }
  const item = items?.[0];
  if (!item) return () => true;
  const isItemShaped = shapeTestOf(item);
  return (value) => (value as unknown[]).every(isItemShaped);
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
    if (names.length === members.length) return shaped;
    for (const name of names) if (!declared.has(name)) unknownMembers.push(path + memberStep(name));
    return shaped;
  };
}

function arrayShaper(item: Shaper): Shaper {
  return (value, path, unknownMembers) =>
    (value as unknown[]).map((element) => item(element, `${path}[*]`, unknownMembers));
}
