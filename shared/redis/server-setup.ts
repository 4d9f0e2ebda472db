// Finds settings of Redis servers that can lose data.

import { mastersOf, type Redis } from './connections.ts';

type Server = ReturnType<typeof mastersOf>[number];

/** Facts in INFO about how a server keeps its data. */
export interface ServerInfo {
  readonly version: string;
  /** `maxmemory-policy`. */
  readonly evictionPolicy: string;
  /** Keys that the server has evicted since its start. */
  readonly evictedKeys: number;
  readonly hasAppendOnlyFile: boolean;
}

/** Parses the reply to INFO. A field that is missing becomes `unknown`, 0 or `false`. */
export function parseInfo(text: string): ServerInfo {
  const member = (name: string) => new RegExp(`^${name}:(.*?)\r?$`, 'm').exec(text)?.[1];
  return {
    version: member('redis_version') ?? 'unknown',
    evictionPolicy: member('maxmemory_policy') ?? 'unknown',
    evictedKeys: Number(member('evicted_keys') ?? 0),
    hasAppendOnlyFile: member('aof_enabled') === '1',
  };
}

/** Returns the parsed INFO; `null` if the user may not run it. Redis 6.2 accepts no list of sections. */
export async function readInfo(server: Server): Promise<ServerInfo | null> {
  const text = await unlessRefused(server.info());
  return text === null ? null : parseInfo(text);
}

/** Returns settings of the servers that can lose data, as sentences. */
export async function setupWarnings(redis: Redis, keyPrefix: string): Promise<string[]> {
  const found = await Promise.all(
    mastersOf(redis).map(async (server) => {
      const info = await readInfo(server);
      return info === null ? [] : await warningsOf(server, info, keyPrefix);
    }),
  );
  return [...new Set(found.flat())];
}

/** Returns the warnings about one server with a known INFO. */
export async function warningsOf(server: Server, info: ServerInfo, keyPrefix: string): Promise<string[]> {
  return [
    ...evictionWarnings(info),
    ...(info.hasAppendOnlyFile ? await replayWarnings(server, keyPrefix) : []),
  ];
}

function evictionWarnings({ evictionPolicy }: ServerInfo): string[] {
  if (evictionPolicy === 'noeviction' || evictionPolicy === 'unknown') return [];
  return [
    `Redis may evict live data and API keys (maxmemory-policy ${evictionPolicy}). Set maxmemory-policy to noeviction.`,
  ];
}

/** The commands that scripts of medref write between MULTI and EXEC to the append-only file, with sample arguments. */
const replayed = [
  ['SET', 'v'],
  ['DEL'],
  ['UNLINK'],
  ['PERSIST'],
  ['PEXPIREAT', '1'],
  ['HSET', 'f', 'v'],
  ['HDEL', 'f'],
  ['ZADD', '1', 'm'],
  ['ZREM', 'm'],
  ['SADD', 'm'],
  ['SREM', 'm'],
  ['RPUSH', 'v'],
  ['XADD', '*', 'f', 'v'],
  ['XDEL', '1-1'],
];

/**
 * Returns a warning if a restart would skip transactions of the append-only file. Redis replays them with the rights of the
 * user `default`, and drops each transaction with a command that `default` may not run (redis#14541, valkey#3983).
 */
async function replayWarnings(server: Server, keyPrefix: string): Promise<string[]> {
  const keys = [`${keyPrefix}:{products}:live`, `${keyPrefix}:keys`];
  const commands = keys.flatMap((key) => replayed.map(([name = '', ...others]) => [name, key, ...others]));
  const asked = [...commands, ['SELECT', '0']].map(async (command) => ({
    command,
    reply: await unlessRefused(server.call('ACL', 'DRYRUN', 'default', ...command)),
  }));
  const replies = await Promise.all(asked);
  // Redis 6.2 has no DRYRUN.
  if (replies.some(({ reply }) => reply === null)) return replayWarningsByRules(server);
  const refused = replies.find(({ reply }) => reply !== 'OK');
  return refused ? [mayNotReplay(`run ${refused.command.slice(0, 2).join(' ')}`)] : [];
}

/** Does the same by the user's rules, which must allow everything. */
async function replayWarningsByRules(server: Server): Promise<string[]> {
  const rules = await unlessRefused(server.call('ACL', 'GETUSER', 'default'));
  if (rules === null)
    return [
      'The Redis user may not run ACL DRYRUN, so medref cannot check whether a restart of Redis keeps the data. Give it +acl|dryrun; on Redis 6.2, +acl|getuser.',
    ];
  const text = JSON.stringify(rules);
  const hasAll = /"(allcommands|\+@all)"/.test(text) && /"(allkeys|~\*)"/.test(text);
  return hasAll ? [] : [mayNotReplay('run every command on every key')];
}

function mayNotReplay(what: string): string {
  return (
    `A restart of Redis loses versions, rollbacks and revoked keys: it replays its append-only file as the user "default", which may not ${what}. ` +
    'Give that user the line of deploy/redis/users.acl: user default off resetpass resetkeys ~* resetchannels +@all'
  );
}

/** Returns `null` if Redis refuses the command: the user may not run it, or the server does not know it. */
async function unlessRefused<Reply>(reply: Promise<Reply>): Promise<Reply | null> {
  return reply.catch((error: Error) => {
    if (/^(NOPERM|ERR unknown|ERR Unknown)/.test(error.message)) return null;
    throw error;
  });
}
