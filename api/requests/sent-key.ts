// In: the head of a request. Out: the key that it carries (RFC 6750).

import type { IncomingMessage } from 'node:http';

const bearer = /^bearer +([A-Za-z0-9._~+/-]+=*) *$/i;

/** The key that a request carries; `undefined` where it carries none of that form. */
export function sentKey({ headers }: Pick<IncomingMessage, 'headers'>): string | undefined {
  return bearer.exec(String(headers.authorization))?.[1];
}
