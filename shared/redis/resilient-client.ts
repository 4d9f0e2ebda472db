// In: a client of Redis. Out: one that lasts: nothing that ioredis does by itself ends its process, or the client for ever.

import { setTimeout as sleep } from 'node:timers/promises';
import type { Cluster, Redis as OneServer } from 'ioredis';

/** Sentinels that cannot be asked are asked again after this long, then after longer, in ms. */
const askAgainMs = { first: 50, longest: 500 };

/**
 * A client of one server. Its errors reach the commands that fail by them; without a listener they would end the process. One whose
 * handshake Redis refused, such as to a database that it does not have, is made anew: ioredis would go on with database 0.
 */
export function resilient(redis: OneServer): OneServer {
  heeded(redis, 'subscribe');
  return redis.on('error', ({ name }) => {
    if (name === 'ReplyError' && redis.status === 'connect') redis.disconnect(true);
  });
}

/**
 * A client of a Cluster, whose nodes tell their errors to it alone. A command that waits for the Cluster to come back is
 * bounded as one that waits for a node's reply. Once it has ended it looks for nodes no more, so that its process can end.
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
 * A client of the master, or of a replica, that Sentinels name. A failover that they tell of while they are asked ends the
 * asking, and would end the client for ever; what they answer is of before, so they are asked again. That is done here also
 * where none of them answers: ioredis would remember each time that it did.
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

/** What ioredis keeps to itself of how it asks Sentinels. */
interface SentinelConnector {
  connect(tell: (event: string, error: Error) => void): Promise<unknown>;
  connectToSentinel(...how: unknown[]): OneServer;
}

/**
 * Credentials of the URL are those of Redis. Sentinels are told them once one asks: many have none, and refuse any. What
 * watches for failovers has no listener for its errors, so that ioredis would write them to stderr.
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
 * Has somebody heed what comes of a command that ioredis also sends by itself: it subscribes again after each reconnection, and
 * asks a node for a slot that is on its way. If that fails, nobody else would know, and Node would end the process.
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
