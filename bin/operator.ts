// Who runs this process, as the log names whoever made a key, or imported by hand.

import { hostname, userInfo } from 'node:os';

/** A user of a machine. */
export interface Operator {
  readonly user: string;
  readonly host: string;
}

export function operator(): Operator {
  return { user: userName(), host: hostname() };
}

/** A container may run as a user that has no name there. */
function userName(): string {
  try {
    return userInfo().username;
  } catch {
    return String(process.getuid?.());
  }
}
