// In: a connection to an upstream. Out: the same, without the answers of 100 Continue that come before the real ones.

import type { Socket } from 'node:net';

/** How the head of such an answer begins. */
const continues = /^HTTP\/1\.\d 100[ \r]/;
const example = 'HTTP/1.1 100 ';
/** What may come of its head before its end is seen, as much as undici allows a head. */
const longestHead = 16 * 1024;

/**
 * Passes over 100 Continue, which a client must be able to read although it did not ask for it (RFC 9110, section 15.2).
 * undici passes over the other informational answers, and cuts the connection at this one.
 * @param socket connected, and not yet listened to by undici
 */
export function passingOverContinue<S extends Socket>(socket: S): S {
  const push = socket.push.bind(socket);
  const write = socket.write.bind(socket) as (...args: unknown[]) => boolean;
  /** What came since the request, while it may still be such an answer; `null` once the real one has begun. */
  let begun: Buffer | null = null;
  return Object.assign(socket, {
    write: (...args: unknown[]) => {
      begun = Buffer.alloc(0);
      return write(...args);
    },
    push: (chunk: Buffer | null) => {
      if (begun === null) return push(chunk);
      const bytes = afterContinues(chunk ? Buffer.concat([begun, chunk]) : begun);
      const isOpen = chunk !== null && mayContinue(bytes);
      begun = isOpen ? bytes : null;
      if (isOpen) return true; // Asks the connection to go on.
      if (chunk !== null) return push(bytes);
      if (bytes.length > 0) push(bytes);
      return push(null);
    },
  });
}

/** What is left when all whole answers of 100 Continue at the start are left out. */
function afterContinues(bytes: Buffer): Buffer {
  let left = bytes;
  while (continues.test(beginningOf(left))) {
    const end = left.indexOf('\r\n\r\n');
    if (end === -1) break;
    left = left.subarray(end + 4);
  }
  return left;
}

/** Whether bytes are the beginning of such an answer, or so few that they may be. */
function mayContinue(bytes: Buffer): boolean {
  const beginning = beginningOf(bytes);
  if (bytes.length < example.length) return continues.test(beginning + example.slice(bytes.length));
  return bytes.length <= longestHead && continues.test(beginning);
}

function beginningOf(bytes: Buffer): string {
  return bytes.toString('latin1', 0, example.length);
}
