// Conditional requests (RFC 9110, section 13): whether what the client holds is what it would get.

/** What a response says of its body. */
export interface Validators {
  /** Weak entity tag, with its `W/`. */
  readonly etag: string;
  /** HTTP date. */
  readonly lastModified: string;
  /** `false` where the answer may be another one at the same date. */
  readonly isToldByDate?: boolean;
}

/** The request's conditions. */
export interface Conditions {
  readonly ifNoneMatch: string | undefined;
  readonly ifModifiedSince: string | undefined;
}

/**
 * Whether the answer is 304. `If-None-Match` (a list, `W/` or not, or `*`) goes before `If-Modified-Since`,
 * which must be the identical date: an older or later one proves nothing where versions can be rolled back.
 */
export function isNotModified(
  { ifNoneMatch, ifModifiedSince }: Conditions,
  { etag, lastModified, isToldByDate = true }: Validators,
): boolean {
  if (ifNoneMatch !== undefined) return matches(ifNoneMatch, etag);
  return isToldByDate && ifModifiedSince !== undefined && ifModifiedSince.trim() === lastModified;
}

/** Weak comparison (RFC 9110, section 8.8.3.2). */
function matches(list: string, etag: string): boolean {
  if (list.trim() === '*') return true;
  const tags = list.match(/(?:W\/)?"[^"]*"/g) ?? [];
  return tags.some((tag) => opaque(tag) === opaque(etag));
}

function opaque(tag: string): string {
  return tag.replace(/^W\//, '');
}
