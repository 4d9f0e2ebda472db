// How commands print: one JSON document with --json, else text for people.

/** The option that every command takes. */
export interface OutputOptions {
  readonly json?: boolean;
}

/** Prints a result to stdout. */
export function print(result: unknown, { json }: OutputOptions, text: () => string): void {
  process.stdout.write(json ? `${JSON.stringify(result)}\n` : `${text()}\n`);
}

/** A line with its controls and format marks as escapes: what upstream sent must not steer the terminal. */
export function printable(line: string): string {
  return line.replace(
    /[\p{Cc}\p{Cf}]/gu,
    (mark) => `\\u{${(mark.codePointAt(0) as number).toString(16).padStart(4, '0')}}`,
  );
}

/** Rows of text in aligned columns, under a heading. */
export function table(heading: readonly string[], rows: readonly (readonly string[])[]): string {
  const widths = heading.map((title, i) =>
    Math.max(title.length, ...rows.map((row) => (row[i] ?? '').length)),
  );
  const line = (cells: readonly string[]) =>
    cells
      .map((cell, i) => cell.padEnd(widths[i] as number))
      .join('  ')
      .trimEnd();
  return [heading, ...rows].map(line).join('\n');
}

/** A whole number with thousands separated. */
export function count(value: number): string {
  return value.toLocaleString('en');
}
