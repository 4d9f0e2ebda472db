// In: a URL that upstream names, such as its next page or where it redirects to. Out: the same as a URL, or null.

/** A longer one is not asked for: this is what all servers should take (RFC 9110, section 4.1). */
export const maxUrlLength = 8_000;

/** What upstream names, seen from where it names it; `null` where that is no URL, or too long for one. */
export function namedUrl(text: string, base: URL): URL | null {
  return text.length <= maxUrlLength && URL.canParse(text, base.href) ? new URL(text, base) : null;
}
