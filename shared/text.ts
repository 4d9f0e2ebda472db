// Text for people: shortened, escaped, counted; and the fields in which two records differ.

import { isDeepStrictEqual } from 'node:util';

/** Returns the first characters of a text, followed by `…` if there are more. */
export function truncate(text: string, length: number): string {
  if (text.length <= length) return text;
  // Copied, because a slice would keep the whole text in memory.
  return `${Buffer.from(text.slice(0, length), 'utf16le').toString('utf16le')}…`;
}

const marks = /[\p{Cc}\p{Cf}]/gu;

/** Returns a line with control characters escaped as `\u{001b}`. */
export function escapeControls(line: string): string {
  return line.replace(
    marks,
    (mark) => `\\u{${(mark.codePointAt(0) as number).toString(16).padStart(4, '0')}}`,
  );
}

/**
 * Returns JSON text of the same value with control characters escaped.
 * @param lines whether line feeds between tokens stay
 */
export function escapeJson(json: string, { lines = false }: { readonly lines?: boolean } = {}): string {
  return json.replace(marks, (mark) =>
    lines && mark === '\n'
      ? mark
      : Array.from(
          { length: mark.length },
          (_, i) => `\\u${mark.charCodeAt(i).toString(16).padStart(4, '0')}`,
        ).join(''),
  );
}

/** Returns a whole number with its thousands separated. */
export function count(value: number): string {
  return value.toLocaleString('en');
}

/** Returns a number with its noun: `1 record`, `2,000 records`. @param noun a noun with a plural on s */
export function counted(value: number, noun: string): string {
  return `${count(value)} ${noun}${value === 1 ? '' : 's'}`;
}

/** Returns an age in its largest unit: `3 d`. */
export function age(seconds: number): string {
  const [value, unit] = unitsOf(seconds).find(([value]) => value > 0) ?? [0, 's'];
  return `${value} ${unit}`;
}

/** Returns an age in its two largest units: `3 d 4 h ago`. */
export function ageText(seconds: number): string {
  const units = unitsOf(seconds);
  const first = units.findIndex(([value]) => value > 0);
  if (first === -1) return 'now';
  const largest = units.slice(first, first + 2).filter(([value]) => value > 0);
  const parts = largest.map(([value, unit]) => `${value} ${unit}`);
  return `${parts.join(' ')} ago`;
}

function unitsOf(seconds: number): [value: number, unit: string][] {
  return [
    [Math.floor(seconds / 86_400), 'd'],
    [Math.floor(seconds / 3_600) % 24, 'h'],
    [Math.floor(seconds / 60) % 60, 'min'],
    [Math.floor(seconds) % 60, 's'],
  ];
}

/** Returns the fields in which two records differ, as paths such as `product.name`. */
export function differingMembers(before: unknown, after: unknown, path = ''): string[] {
  if (!isObject(before) || !isObject(after)) return isDeepStrictEqual(before, after) ? [] : [path];
  return Object.keys(after).flatMap((name) =>
    differingMembers(before[name], after[name], path === '' ? name : `${path}.${name}`),
  );
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** Returns a time of ISO 8601 without its seconds: `2026-11-22 03:00 UTC`. */
export function shortTime(time: string): string {
  return /^\d{4}-\d\d-\d\dT\d\d:\d\d.*Z$/.test(time) ? `${time.slice(0, 16).replace('T', ' ')} UTC` : time;
}
