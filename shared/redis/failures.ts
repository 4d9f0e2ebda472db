// The meaning of Redis errors, and their messages. It imports no client, so every command can use it.

/** Redis is unavailable or did not reply. The message names the server and the cause. */
export class RedisUnavailableError extends Error {}

/** Replies of a Redis that is starting, failing over, short of replicas, or moving a slot. */
const passing =
  /^(LOADING|READONLY|MASTERDOWN|CLUSTERDOWN|TRYAGAIN|MOVED|ASK|UNBLOCKED|NOREPLICAS|BUSY|ERR max number of clients)\b/;

/** Errors of ioredis for a command that found no server or got no reply. */
const unreached =
  /^(Command timed out|Connection is closed|Stream isn't writeable|Connection not |Too many Cluster redirections|Cluster is |Cluster isn't ready|None of startup nodes|All sentinels are unreachable)/;

/**
 * Returns the reply of Redis in an error. Redis 6.2 puts a prefix before replies to commands of a script, such as
 * "ERR Error running script (call to f_1): @user_script:3: @user_script: 3: -OOM command not allowed".
 */
export function replyOf({ message }: Pick<Error, 'message'>): string {
  return message.replace(/^ERR Error running script .*@user_script: ?\d+: -(?=[A-Z]+ )/, '');
}

/** Returns whether an error means that Redis is temporarily unavailable, so that a retry may succeed. */
export function isRedisUnavailable(error: unknown): boolean {
  if (!(error instanceof Error)) return false;
  if (error.name === 'ReplyError') {
    return passing.test(replyOf(error));
  }
  return (
    error.name === 'MaxRetriesPerRequestError' ||
    error.name === 'AbortError' ||
    error.name === 'ClusterAllFailedError' ||
    'syscall' in error ||
    unreached.test(error.message)
  );
}

/** The kinds of refusals that an operator has to fix: rights, memory or disk, or a command that Redis does not accept. */
export type RefusalKind = 'forbidden' | 'full' | 'refused';

/** Returns the kind of a refusal that no retry helps; `null` for any other error. */
export function refusalKind(error: unknown): RefusalKind | null {
  if (!(error instanceof Error) || error.name !== 'ReplyError' || isRedisUnavailable(error)) return null;
  if (/^(NOPERM|NOAUTH|WRONGPASS)\b/.test(replyOf(error))) return 'forbidden';
  return /^(OOM|MISCONF)\b/.test(replyOf(error)) ? 'full' : 'refused';
}

/** Messages by the first word of Redis' reply. */
const refusals: Readonly<Record<string, string>> = {
  OOM: 'Redis has reached its maxmemory. Give it more, or lower KEEP_VERSIONS, and try again after a minute.',
  MISCONF: 'Redis cannot write to its disk. See its log, fix the cause, and try again.',
  READONLY: 'This Redis is a read-only replica. Set REDIS_URL to its primary.',
  MASTERDOWN: 'This Redis is a replica that has lost its primary. Set REDIS_URL to its primary.',
  MOVED:
    'This Redis is a node of a Cluster. Set REDIS_URL to redis+cluster:// and the addresses of some nodes.',
  CLUSTERDOWN:
    'The Redis Cluster lacks a primary for some slots. See CLUSTER INFO, fix the Cluster, and try again.',
  NOREPLICAS: 'Redis has fewer replicas than min-replicas-to-write. Restore its replicas, and try again.',
  LOADING: 'Redis is still loading its data. Try again shortly.',
  NOAUTH: 'Redis requires a password. Add it to REDIS_URL.',
  WRONGPASS: 'Redis does not accept the user or password of REDIS_URL.',
  NOPERM: 'The Redis user lacks a right that medref needs. docs/REDIS.md lists the rights.',
  'ERR DB index': 'Redis does not have the database of REDIS_URL. Choose a different number, such as 0.',
  'ERR value is out of range':
    'Redis does not have the database of REDIS_URL. Choose a different number, such as 0.',
};

/** Redis' reply in an error message, alone or after the prefix of a failed connection. */
const replied = /^(Redis at \S+ cannot be used: )?(ERR DB index|ERR value is out of range|[A-Z]+)\b/;

/** Advice for limits on open files, by Node's code in the message. */
const fileLimits: Readonly<Record<string, string>> = {
  EMFILE:
    'This process has reached its limit of open files (EMFILE). Raise it with "ulimit -n", or LimitNOFILE= of its systemd unit.',
  ENFILE: 'This machine has reached its limit of open files (ENFILE). Raise fs.file-max.',
};

/** Returns the meaning of an error as a sentence; other errors keep their message. */
export function plainReason(error: Error): string {
  const [code] = /\b(EMFILE|ENFILE)\b/.exec(error.message) ?? [];
  if (code && !error.message.includes('limit of open files')) return fileLimits[code] as string;
  const [, where = '', word = ''] = replied.exec(replyOf(error)) ?? [];
  const refusal = refusals[word];
  if (refusal && (error.name === 'ReplyError' || where)) return where + refusal;
  if (isRedisUnavailable(error)) return `${unavailableText(error)} Try again.`;
  return error.message;
}

function unavailableText(error: Error): string {
  if (error.message.startsWith('Command timed out')) return 'Redis did not reply in time.';
  if (unreached.test(error.message)) return 'The connection to Redis is lost.';
  return `Redis is unavailable (${error.message}).`;
}

/** A key does not hold what medref stores there. The message names the key and its content. */
export class DamagedKeyError extends Error {}

/** Parses a stored JSON text. @throws DamagedKeyError if it is not JSON */
export function parseStored<Value>(key: string, text: string): Value {
  try {
    const value: unknown = JSON.parse(text);
    if (typeof value === 'object' && value !== null) return value as Value;
  } catch {
    // The error below names the key.
  }
  throw new DamagedKeyError(`The Redis key ${key} holds unexpected text.`);
}

/** Returns whether an error reports a key of the wrong type. */
export function isWrongType(error: unknown): boolean {
  return error instanceof Error && error.name === 'ReplyError' && /\bWRONGTYPE\b/.test(error.message);
}

/** Returns the error of a damaged key, with the key and its type; `null` for other errors. */
export async function damageIn(
  redis: { type(key: string): Promise<string> },
  error: unknown,
): Promise<DamagedKeyError | null> {
  if (error instanceof DamagedKeyError) return error;
  if (!isWrongType(error)) return null;
  const { command } = error as { command?: { name: string; args: readonly unknown[] } };
  const key = String(command?.args[0]);
  const type = await redis.type(key);
  return new DamagedKeyError(`The Redis key ${key} has the unexpected type ${type}.`);
}
