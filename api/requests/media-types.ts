// In: the Accept header of a request. Out: whether it would rather have something else than JSON.

import Accept from '@hapi/accept';
import type { Request } from '@hapi/hapi';

/** A longer `Accept` is not looked at: what @hapi/accept takes for it grows with the square of its length. */
const maxAcceptLength = 500;

/** Whether a client names a media type, and would rather have it than `application/json`. */
export function prefersToJson({ raw: { req } }: Request, mediaType: string): boolean {
  const { accept } = req.headers;
  if (accept === undefined || accept.length > maxAcceptLength) return false;
  if (!accept.toLowerCase().includes(mediaType)) return false;
  try {
    // What is preferred comes with its parameters, which change nothing.
    return Accept.mediaType(accept, ['application/json', mediaType]).split(';', 1)[0] === mediaType;
  } catch {
    return false; // A malformed field is as good as none.
  }
}
