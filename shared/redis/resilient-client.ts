// Makes clients of ioredis resilient: no internal error of ioredis ends the process, or the client for good.

import { setTimeout as sleep } from 'node:timers/promises';
import type { Cluster, Redis as OneServer } from 'ioredis';

/** The pauses before Sentinels are asked again, in ms; they grow from the first to the longest. */
const askAgainMs = { first: 50, longest: 500 };

/**
 * Makes a client of one server resilient. Errors reach the commands that fail; without a listener they would end the process.
 * After a refused handshake, such as for a missing database, it reconnects: ioredis would continue with database 0.
 */
export function resilient(redis: OneServer): OneServer {
  heeded(redis, 'subscribe');
  return redis.on('error', ({ name }) => {
    if (name === 'ReplyError' && redis.status === 'connect') redis.disconnect(true);
  });
}

/**
 * Makes a client of a Cluster resilient; its nodes report errors only to it. A command that waits for the Cluster has the same
 * time limit as one that waits for a node. After its end it looks for no nodes, so that the process can end.
 */
export function resilientCluster(redis: Cluster): Cluster {
  const send = redis.sendCommand.bind(redis);
  redis.sendCommand = (command, stream, node) => {
    const { commandTimeout } = redis.options.redisOptions ?? {};
    if (commandTimeout !== undefined) command.setTimeout(commandTimeout);
    return send(command, stream, node);
  };
  redis.on('+node', (node: OneServer) => heeded(node, 'asking'));
  redis.on('end', () => {
    redis.refreshSlotsCache = () => undefined;
  });
  return redis.on('error', () => undefined);
}

/**
 * Makes a client of Sentinels resilient. If a Sentinel reports a failover during a query, ioredis would end the client for good;
 * the query is repeated, because its result is outdated. Unreachable Sentinels are also retried here: ioredis would store each
 * attempt forever.
 */
export function resilientSentinels(redis: OneServer): OneServer {
  const inside = redis as unknown as { connector: SentinelConnector; manuallyClosing: boolean };
  const { connector } = inside;
  quietAboutSentinels(redis, connector);
  const connect = connector.connect.bind(connector);
  connector.connect = async (tell) => {
    for (let tries = 1; ; tries += 1) {
      try {
        return await connect(tell);
      } catch (error) {
        const [unreachable, last = ''] = (error as Error).message.split(' and retry is disabled');
        if (unreachable === 'All sentinels are unreachable' && !inside.manuallyClosing)
          tell('error', new Error(`${unreachable}${last}`));
        await sleep(Math.min(tries * askAgainMs.first, askAgainMs.longest));
        if (inside.manuallyClosing) throw error;
      }
    }
  };
  return redis;
}

/** Private parts of ioredis' Sentinel connector. */
interface SentinelConnector {
  connect(tell: (event: string, error: Error) => void): Promise<unknown>;
  connectToSentinel(...how: unknown[]): OneServer;
}

/**
 * Sends the credentials of the URL only to Sentinels that ask for them: many have none and refuse any. Adds the missing error
 * listener of ioredis' failover detector, which would otherwise write to stderr.
 */
function quietAboutSentinels(redis: OneServer, connector: SentinelConnector): void {
  const connectToSentinel = connector.connectToSentinel.bind(connector);
  connector.connectToSentinel = (...how) => {
    const sentinel = connectToSentinel(...how).on('error', () => undefined);
    heeded(sentinel, 'subscribe');
    return sentinel;
  };
  redis.on('sentinelError', ({ message }: Error) => {
    const { options } = redis;
    if (/\bNOAUTH\b/.test(message)) {
      options.sentinelUsername = options.username;
      options.sentinelPassword = options.password;
    }
  });
}

/**
 * Handles errors of commands that ioredis sends by itself: subscriptions after a reconnection, and ASKING for a moving slot. An
 * unhandled one would end the process.
 */
function heeded(redis: OneServer, name: 'subscribe' | 'asking'): void {
  const its = redis as unknown as Record<typeof name, (...args: unknown[]) => Promise<unknown>>;
  const send = its[name].bind(redis);
  its[name] = (...args) => {
    const reply = send(...args);
    reply.catch(() => undefined);
    return reply;
  };
}
