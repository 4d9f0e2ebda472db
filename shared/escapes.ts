// In: text that upstream may have sent. Out: the same with controls and format marks as escapes, so that it steers no terminal.

const marks = /[\p{Cc}\p{Cf}]/gu;

/** A line for people; a mark is shown as `\u{001b}`. */
export function printable(line: string): string {
  return line.replace(
    marks,
    (mark) => `\\u{${(mark.codePointAt(0) as number).toString(16).padStart(4, '0')}}`,
  );
}

/**
 * JSON text that is the same value to whoever reads it, with every mark in its strings as JSON's own escape.
 * @param lines whether it was written over several lines, which stay
 */
export function printableJson(json: string, { lines = false }: { readonly lines?: boolean } = {}): string {
  return json.replace(marks, (mark) =>
    lines && mark === '\n'
      ? mark
      : Array.from(
          { length: mark.length },
          (_, i) => `\\u${mark.charCodeAt(i).toString(16).padStart(4, '0')}`,
        ).join(''),
  );
}
