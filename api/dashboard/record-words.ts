// In: a record of any collection. Out: its members in words.

import { html } from 'hono/html';
import type { Collection } from '../../shared/collections/define.ts';
import { facts, none, table } from '../admin/dashboard/html.ts';
import { foldedText, type Html, shownText } from './shown-text.ts';

/** The most elements of an array that are shown; the JSON has all. */
const maxElements = 200;

/** A record as it is stored, and what lists show of it. */
export interface ListedRecord {
  readonly id: number;
  readonly name: string;
  readonly record: unknown;
}

/** What lists show of a record. @param json its JSON text */
export function listedRecord(collection: Collection, json: string): ListedRecord {
  const record: unknown = JSON.parse(json);
  return { record, id: collection.idOf(record), name: collection.nameOf(record) };
}

/** The members of a record, each with its value; those of arrays as tables. */
export function recordInWords(record: unknown): Html {
  const rows = membersOf(record, '');
  const arrays = rows.filter(([, value]) => isArrayOfObjects(value)) as [string, Record<string, unknown>[]][];
  const plain = rows.filter(([, value]) => !isArrayOfObjects(value));
  return html`${facts(plain.map(([name, value]) => [name, inWords(value)] as const))}
${arrays.map(([name, elements]) => arrayTable(name, elements))}`;
}

/** Members with the names that lead to them, such as `product name`. */
function membersOf(value: unknown, path: string): [string, unknown][] {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return [[path, value]];
  return Object.entries(value).flatMap(([name, member]) =>
    membersOf(member, path === '' ? name : `${path} ${name}`),
  );
}

function inWords(value: unknown): Html | string {
  if (value === null || value === undefined) return html`<span class="none">none</span>`;
  if (value === '') return html`<span class="none">empty</span>`;
  if (typeof value === 'boolean') return value ? 'yes' : 'no';
  if (Array.isArray(value) && value.length === 0) return html`<span class="none">none</span>`;
  return typeof value === 'string' ? foldedText(value) : shownText(JSON.stringify(value));
}

function isArrayOfObjects(value: unknown): boolean {
  return (
    Array.isArray(value) && value.length > 0 && value.every((it) => typeof it === 'object' && it !== null)
  );
}

function arrayTable(name: string, elements: readonly Record<string, unknown>[]): Html {
  const members = [...new Set(elements.slice(0, maxElements).flatMap((it) => Object.keys(it)))];
  const more = elements.length - maxElements;
  return html`${table(
    `${name} (${elements.length})`,
    members,
    elements
      .slice(0, maxElements)
      .map((it) => members.map((member) => (it[member] === undefined ? none : inWords(it[member])))),
  )}${more > 0 ? html`<p>${more} more are in the JSON below.</p>` : ''}`;
}
