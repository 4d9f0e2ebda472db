// Validates one value of upstream: returns the record as JSON text in its public shape, or the reason to reject it.

import { closestMatch } from 'leven';
import type { Collection } from '../shared/collections/define.ts';
import { judgement } from '../shared/collections/rules.ts';
import { jsonPath, memberStep } from './parse/values.ts';

/** A value in the schema, with its members or elements (joi's own description). */
export interface Description {
  readonly type: string;
  /** The members of an object, in the order in which they are served. */
  readonly keys?: Readonly<Record<string, Description>>;
  /** The description of an array's elements. */
  readonly items?: readonly Description[];
  /** Values that are valid although the type refuses them. */
  readonly allow?: readonly unknown[];
  /** What `rule` and `arrayOf` in shared/collections/rules.ts adds. */
  readonly metas?: readonly { readonly accepts?: (value: unknown) => boolean }[];
  readonly examples?: unknown;
}

/** Returns the description of a collection's records. */
export function describe({ schema }: Collection): Description {
  return schema.describe() as Description;
}

/** The longest record, as UTF-8 bytes of its JSON text: a page of 200 is in memory several times. */
export const maxRecordBytes = 256 * 1024;

/** The result of validating one value. */
export type Verdict =
  | {
      readonly valid: true;
      readonly id: number;
      /** The record in its public shape, also as JSON text. */
      readonly record: unknown;
      readonly json: string;
      readonly unknownMembers: readonly string[];
    }
  | {
      readonly valid: false;
      readonly path: string;
      readonly reason: string;
      /** An unknown member with a name similar to the missing one. */
      readonly similar?: string;
    };

/** Returns whether a value is valid and in the public shape: the declared members in declared order, and no others. */
type Acceptance = (value: unknown) => boolean;

/** Builds the public shape of a valid value, and collects the names of other members. */
type Shaper = (value: unknown, path: string, unknownMembers: string[]) => unknown;

/**
 * Makes the validator of a collection.
 * @returns a function from a parsed JSON value, which it does not change, to its {@link Verdict}; it never throws
 */
export function createValidator(collection: Collection): (value: unknown) => Verdict {
  const description = describe(collection);
  const accepts = acceptanceOf(description);
  const shape = shaperOf(description);
  // Set once: with options per call, joi would compile its rules each time.
  const schema = collection.schema.prefs(judgement);
  return (source) => {
    const value = collection.accept ? collection.accept(source) : source;
    const isAccepted = accepts(value);
    const detail = isAccepted ? undefined : schema.validate(value).error?.details[0];
    if (detail) {
      const { path, type } = detail;
      const similar = type === 'any.required' ? similarMember(value, path, description) : undefined;
      const reject = { valid: false, path: jsonPath(path), reason: detail.message.trim() } as const;
      return similar === undefined ? reject : { ...reject, similar };
    }
    const unknownMembers: string[] = [];
    const record = isAccepted ? value : shape(value, '$', unknownMembers);
    const json = JSON.stringify(record);
    const tooLong = lengthReason(json);
    if (tooLong) return { valid: false, path: '$', reason: tooLong };
    const id = collection.idOf(record);
    return { valid: true, id, record, json, unknownMembers };
  };
}

/** Returns the unknown member whose name is most similar to the missing one: upstream may have renamed it. */
function similarMember(
  value: unknown,
  path: readonly (string | number)[],
  description: Description,
): string | undefined {
  let [parent, declared] = [value, description] as [unknown, Description | undefined];
  for (const step of path.slice(0, -1)) {
    parent = (parent as Record<string | number, unknown>)[step];
    declared = typeof step === 'number' ? declared?.items?.[0] : declared?.keys?.[step];
  }
  const missing = plainName(String(path.at(-1)));
  const unknown = Object.keys(parent as object).filter((name) => !Object.hasOwn(declared?.keys ?? {}, name));
  const byPlainName = new Map(unknown.map((name) => [plainName(name), name]));
  const maxDistance = Math.min(2, Math.floor(missing.length / 3));
  return byPlainName.get(closestMatch(missing, [...byPlainName.keys()], { maxDistance }) ?? '');
}

function plainName(name: string): string {
  return name.toLowerCase().replace(/[^\p{L}\p{N}]/gu, '');
}

/** Returns why a record is too long, or `null`. */
function lengthReason(json: string): string | null {
  // A quick check: a character has at most three bytes.
  if (json.length * 3 <= maxRecordBytes) return null;
  const length = Buffer.byteLength(json);
  return length > maxRecordBytes
    ? `is ${length} bytes of JSON text; at most ${maxRecordBytes} are allowed`
    : null;
}

/**
 * Makes a quick test from joi's description of a schema: joi takes ten times as long. What it accepts, joi accepts; what it does
 * not accept or does not know, joi decides.
 */
function acceptanceOf({
  type,
  keys,
  items,
  allow = [],
  metas = [],
  examples,
  ...others
}: Description): Acceptance {
  if (Object.keys(others).length > 0) return () => false;
  const rule = metas[0]?.accepts ?? (() => true);
  if (keys) return objectAcceptance(Object.keys(keys), Object.values(keys).map(acceptanceOf));
  if (items?.length === 1) {
    const accepts = acceptanceOf(items[0] as Description);
    return (value) => Array.isArray(value) && rule(value) && value.every(accepts);
  }
  if (metas[0]?.accepts) return rule;
  if (type === 'boolean') return (value) => typeof value === 'boolean';
  if (type === 'string' && allow.includes(''))
    return (value) => typeof value === 'string' || allow.includes(value);
  return () => false;
}

function objectAcceptance(names: readonly string[], members: readonly Acceptance[]): Acceptance {
  return (value) => {
    if (typeof value !== 'object' || value === null) return false;
    let n = 0;
    for (const name in value) {
      if (name !== names[n] || !members[n]?.((value as Record<string, unknown>)[name])) return false;
      n += 1;
    }
    return n === names.length;
  };
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
