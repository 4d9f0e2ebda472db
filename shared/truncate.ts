// Text that came from outside, as messages repeat it: its beginning.

/** The first characters of a text, followed by `…` where there are more. */
export function truncate(text: string, length: number): string {
  if (text.length <= length) return text;
  // Copied, because a slice would hold on to all of the text.
  return `${Buffer.from(text.slice(0, length), 'utf16le').toString('utf16le')}…`;
}
