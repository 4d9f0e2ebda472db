// What the exit code of every command means.

/** Exit codes of `medref`. */
export const exitCodes = Object.freeze({
  /** Done, or nothing had changed. */
  done: 0,
  failed: 1,
  /** Wrong usage or settings. */
  usage: 2,
  /** Refused by a check; what is live stays. */
  refused: 3,
  /** The collection's lock is held. */
  locked: 4,
});

/** The command cannot mean anything as it was given; ends with {@link exitCodes.usage}. */
export class UsageError extends Error {}

/** The lock of a collection is held by another; ends with {@link exitCodes.locked}. */
export class LockedError extends Error {}
