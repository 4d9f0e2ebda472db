// Which pages of browsers may read answers. In: their origins, and that of a request. Out: header fields, by the CORS protocol
// of the Fetch Standard, section 3.3.

/** Origins of pages; `*`: those of all. */
export type AllowedOrigins = '*' | readonly string[];

/** What a page may read besides the fields that every page may. */
const exposed = [
  ...['Medref-Version', 'Medref-Digest', 'ETag', 'Last-Modified', 'Content-Length'],
  ...['Retry-After', 'RateLimit', 'RateLimit-Policy', 'WWW-Authenticate', 'X-Request-Id'],
].join(', ');

/** The fields by which a page of this origin may read an answer, names and values by turns. */
export function crossOriginFields(allowed: AllowedOrigins, origin: string | undefined): string[] {
  if (allowed === '*') return readableBy('*');
  const isAllowed = origin !== undefined && allowed.includes(origin);
  // Also where the answer is for nobody: a cache must not give it to others.
  return [...(isAllowed ? readableBy(origin) : []), 'vary', 'Origin'];
}

function readableBy(origin: string): string[] {
  return ['access-control-allow-origin', origin, 'access-control-expose-headers', exposed];
}
