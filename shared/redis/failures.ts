// What an error of Redis means, and how it is told. Loads nothing of a client, so that every command can tell it.

/** Redis could not be reached, or did not answer; the message says where and why. */
export class RedisUnavailableError extends Error {}

/** Whether an error of a command means that Redis is away, or not able to answer for a while: asked again, it may answer. */
export function isRedisUnavailable(error: unknown): boolean {
  if (!(error instanceof Error)) return false;
  if (error.name === 'ReplyError') {
    return /^(LOADING|READONLY|MASTERDOWN|CLUSTERDOWN|TRYAGAIN|BUSY|ERR max number of clients)\b/.test(
      error.message,
    );
  }
  return (
    error.name === 'MaxRetriesPerRequestError' ||
    error.name === 'AbortError' ||
    'syscall' in error ||
    /^(Command timed out|Connection is closed|Stream isn't writeable|Connection not )/.test(error.message)
  );
}

/** What an operator has to mend before Redis does what it was asked: rights, memory or disk, or what medref asks of it. */
export type RefusalKind = 'forbidden' | 'full' | 'refused';

/** Of which kind a refusal is that asking again does not help against; `null` for any other error. */
export function refusalKind(error: unknown): RefusalKind | null {
  if (!(error instanceof Error) || error.name !== 'ReplyError' || isRedisUnavailable(error)) return null;
  if (/^(NOPERM|NOAUTH|WRONGPASS)\b/.test(error.message)) return 'forbidden';
  return /^(OOM|MISCONF)\b/.test(error.message) ? 'full' : 'refused';
}

/** Why Redis did not do what it was asked, by the first word of its reply. */
const refusals: Readonly<Record<string, string>> = {
  OOM: 'Redis has reached its maxmemory. Give it more, or lower KEEP_VERSIONS, and try again.',
  MISCONF: 'Redis cannot write to its disk. See its log, mend it, and try again.',
  READONLY: 'This Redis is a read-only replica. Set REDIS_URL to its primary.',
  LOADING: 'Redis is still loading its data. Try again shortly.',
  NOAUTH: 'Redis wants a password. Put it into REDIS_URL.',
  WRONGPASS: 'Redis does not accept the user or password of REDIS_URL.',
  NOPERM: 'The Redis user may not do what medref needs. See docs/OPERATIONS.md for its rights.',
  'ERR DB index': 'Redis does not have the database of REDIS_URL. Set it to another one, such as 0.',
  'ERR value is out of range':
    'Redis does not have the database of REDIS_URL. Set it to another one, such as 0.',
};

/** What Redis replied, in the message of an error: alone, or behind the words of one that could not connect. */
const replied = /^(Redis at \S+ cannot be used: )?(ERR DB index|ERR value is out of range|[A-Z]+)\b/;

/** What an error means, in a plain sentence; an error that is not of Redis says so itself. */
export function plainReason(error: Error): string {
  const [, where = '', word = ''] = replied.exec(error.message) ?? [];
  const refusal = refusals[word];
  if (refusal && (error.name === 'ReplyError' || where)) return where + refusal;
  if (isRedisUnavailable(error))
    return `Redis did not answer in time or went away (${error.message}). Try again.`;
  return error.message;
}
