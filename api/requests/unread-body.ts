// Bodies of requests, which nobody reads: not what they say, nor what they say of themselves, nor when they come.

/** What a route takes of a body. */
export const unreadBody = {
  parse: false,
  output: 'stream',
  maxBytes: Number.MAX_SAFE_INTEGER,
  override: 'application/octet-stream',
} as const;
