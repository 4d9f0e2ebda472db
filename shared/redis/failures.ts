// What an error of Redis means, and how it is told. Loads nothing of a client, so that every command can tell it.

/** Redis could not be reached, or did not answer; the message says where and why. */
export class RedisUnavailableError extends Error {}

/** Replies of a Redis that is starting, is at a failover, has too few replicas, or moves what is asked for. */
const passing =
  /^(LOADING|READONLY|MASTERDOWN|CLUSTERDOWN|TRYAGAIN|MOVED|ASK|UNBLOCKED|NOREPLICAS|BUSY|ERR max number of clients)\b/;

/** What the client of Redis says of a command that has found no server, or had no reply. */
const unreached =
  /^(Command timed out|Connection is closed|Stream isn't writeable|Connection not |Too many Cluster redirections|Cluster is |Cluster isn't ready|None of startup nodes|All sentinels are unreachable)/;

/**
 * Returns what Redis replied: Redis 6.2 puts the reply to a command of a script behind words of its own, such as
 * "ERR Error running script (call to f_1): @user_script:3: @user_script: 3: -OOM command not allowed".
 */
export function replyOf({ message }: Pick<Error, 'message'>): string {
  return message.replace(/^ERR Error running script .*@user_script: ?\d+: -(?=[A-Z]+ )/, '');
}

/** Whether an error of a command means that Redis is away, or not able to answer for a while: asked again, it may answer. */
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

/** What an operator has to mend before Redis does what it was asked: rights, memory or disk, or what medref asks of it. */
export type RefusalKind = 'forbidden' | 'full' | 'refused';

/** Of which kind a refusal is that asking again does not help against; `null` for any other error. */
export function refusalKind(error: unknown): RefusalKind | null {
  if (!(error instanceof Error) || error.name !== 'ReplyError' || isRedisUnavailable(error)) return null;
  if (/^(NOPERM|NOAUTH|WRONGPASS)\b/.test(replyOf(error))) return 'forbidden';
  return /^(OOM|MISCONF)\b/.test(replyOf(error)) ? 'full' : 'refused';
}

/** Why Redis did not do what it was asked, by the first word of its reply. */
const refusals: Readonly<Record<string, string>> = {
  OOM: 'Redis has reached its maxmemory. Give it more, or lower KEEP_VERSIONS, and try again.',
  MISCONF: 'Redis cannot write to its disk. See its log, mend it, and try again.',
  READONLY: 'This Redis is a read-only replica. Set REDIS_URL to its primary.',
  MASTERDOWN: 'This Redis is a replica that has lost its primary. Set REDIS_URL to its primary.',
  MOVED:
    'This Redis is a node of a Cluster. Set REDIS_URL to redis+cluster:// and the addresses of some nodes.',
  CLUSTERDOWN: 'The Redis Cluster lacks a master for some slots. See CLUSTER INFO, mend it, and try again.',
  NOREPLICAS: 'Redis has fewer replicas than its min-replicas-to-write. Mend them, and try again.',
  LOADING: 'Redis is still loading its data. Try again shortly.',
  NOAUTH: 'Redis wants a password. Put it into REDIS_URL.',
  WRONGPASS: 'Redis does not accept the user or password of REDIS_URL.',
  NOPERM: 'The Redis user may not do what medref needs. docs/REDIS.md lists the rights.',
  'ERR DB index': 'Redis does not have the database of REDIS_URL. Set it to another one, such as 0.',
  'ERR value is out of range':
    'Redis does not have the database of REDIS_URL. Set it to another one, such as 0.',
};

/** What Redis replied, in the message of an error: alone, or behind the words of one that could not connect. */
const replied = /^(Redis at \S+ cannot be used: )?(ERR DB index|ERR value is out of range|[A-Z]+)\b/;

/** What to do about a limit of open files, by the code that Node names in its message. */
const fileLimits: Readonly<Record<string, string>> = {
  EMFILE:
    'This process has reached its limit of open files (EMFILE). Raise it with "ulimit -n", or LimitNOFILE= of its systemd unit.',
  ENFILE: 'This machine has reached its limit of open files (ENFILE). Raise fs.file-max.',
};

/** What an error means, in a plain sentence; an error that is not of Redis says so itself. */
export function plainReason(error: Error): string {
  const [code] = /\b(EMFILE|ENFILE)\b/.exec(error.message) ?? [];
  if (code && !error.message.includes('limit of open files')) return fileLimits[code] as string;
  const [, where = '', word = ''] = replied.exec(replyOf(error)) ?? [];
  const refusal = refusals[word];
  if (refusal && (error.name === 'ReplyError' || where)) return where + refusal;
  if (isRedisUnavailable(error))
    return `Redis did not answer in time or went away (${error.message}). Try again.`;
  return error.message;
}

/** What Redis holds under a key is not what medref stores there; the message names the key and says what it is. */
export class DamagedKeyError extends Error {}

/** A value as it was stored under a key, from its JSON text. @throws DamagedKeyError where it is none */
export function parseStored<Value>(key: string, text: string): Value {
  try {
    const value: unknown = JSON.parse(text);
    if (typeof value === 'object' && value !== null) return value as Value;
  } catch {
    // Told below.
  }
  throw new DamagedKeyError(`The Redis key ${key} holds text that medref did not store there.`);
}

/** Whether an error of a command says that its key is of another type than the command is for. */
export function isWrongType(error: unknown): boolean {
  return error instanceof Error && error.name === 'ReplyError' && /\bWRONGTYPE\b/.test(error.message);
}

/** What an error tells of a damaged key, with the key and its type; `null` where it tells of something else. */
export async function damageIn(
  redis: { type(key: string): Promise<string> },
  error: unknown,
): Promise<DamagedKeyError | null> {
  if (error instanceof DamagedKeyError) return error;
  if (!isWrongType(error)) return null;
  const { command } = error as { command?: { name: string; args: readonly unknown[] } };
  const key = String(command?.args[0]);
  const type = await redis.type(key);
  return new DamagedKeyError(`The Redis key ${key} is a ${type}, which is not what medref stores there.`);
}
