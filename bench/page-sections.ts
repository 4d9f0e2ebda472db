// In: a page that a command writes in sections, each under a heading of its own. Out: their texts, so that one that is made
// anew can be put into the page that is there.

/** The sections of a page, by their headings. */
export function sectionsOf(page: string): Map<string, string> {
  const texts = page.split(/^(?=## )/m).slice(1);
  return new Map(texts.map((text) => [text.slice(3, text.indexOf('\n')), `${text.trimEnd()}\n`]));
}
