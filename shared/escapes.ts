// Escapes control and format characters in text from outside, so that it cannot control a terminal.

const marks = /[\p{Cc}\p{Cf}]/gu;

/** Returns a line for people with such characters as `\u{001b}`. */
export function escapeControls(line: string): string {
  return line.replace(
    marks,
    (mark) => `\\u{${(mark.codePointAt(0) as number).toString(16).padStart(4, '0')}}`,
  );
}

/**
 * Returns JSON text of the same value with such characters as JSON escapes.
 * @param lines whether line feeds between the tokens stay
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
