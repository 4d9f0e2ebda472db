// Several real Redis servers on loopback that work as one: a Cluster, or a primary with replicas and the Sentinels that watch
// it. They end with the test process, even if it crashes.

import { randomInt } from 'node:crypto';
import { rmSync } from 'node:fs';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import type { Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { Redis as OneServer } from 'ioredis';
import { findRedisServer } from '../../bin/setup.mjs';
import { type Child, startChild } from '../../demo/child.ts';
import { startTestRedis, type TestRedis } from '../support/redis-server.ts';

/** A server of a topology, and a connection by which tests inspect it. */
export interface Node {
  readonly server: TestRedis;
  readonly redis: OneServer;
}

/** Servers that medref uses as one. */
export interface Topology {
  /** The value for REDIS_URL. */
  readonly url: string;
  readonly nodes: readonly Node[];
  /** Returns the node that takes writes of a key now. */
  masterOf(key: string): Promise<Node>;
  /** Returns the replicas of that node. */
  replicasOf(key: string): Promise<Node[]>;
  /** Makes a replica take over gracefully from the primary of a key; resolves when it has. */
  failOver(key: string): Promise<void>;
  /** Starts dead nodes again; each node that is not the primary now follows it, as its file would say. */
  revive(nodes: readonly Node[]): Promise<void>;
  /** Waits until every node is up, each replica has all data, and all nodes agree. */
  whole(): Promise<void>;
  stop(): Promise<void>;
}

/** How long a primary is silent before others consider it dead, in ms. */
const downAfterMs = 1_000;

/** How long tests wait for servers to agree, in ms. */
const patienceMs = 30_000;

/** The name by which Sentinels know the primary. */
export const masterName = 'medref-master';

/** Starts a Cluster of primaries with so many replicas each; the caller calls `stop`. */
export async function startCluster({
  masters,
  replicas,
}: {
  readonly masters: number;
  readonly replicas: number;
}): Promise<Topology> {
  const settings = {
    ...{ 'cluster-enabled': 'yes', 'cluster-node-timeout': String(downAfterMs), ...quickReplicas },
    'cluster-announce-ip': '127.0.0.1', // A node without other nodes does not know its own address.
  };
  const nodes = await startNodes(masters * (1 + replicas), () => settings);
  const own = await Promise.all(nodes.map(({ redis }) => redis.cluster('MYID')));
  const [first] = nodes as [Node];
  for (const { server } of nodes.slice(1)) await first.redis.cluster('MEET', '127.0.0.1', server.port);
  for (let n = 0; n < masters; n++) {
    const slot = (of: number) => Math.floor((16_384 * of) / masters);
    const slots = Array.from({ length: slot(n + 1) - slot(n) }, (_, i) => slot(n) + i);
    await (nodes[n] as Node).redis.cluster('ADDSLOTS', ...slots);
  }
  await until(async () => {
    const known = await Promise.all(nodes.map(({ redis }) => redis.cluster('INFO')));
    return known.every((info) => String(info).includes(`cluster_known_nodes:${nodes.length}`));
  }, 'the nodes know each other');
  for (const [n, { redis }] of nodes.entries()) {
    // A node counts as known while its handshake is still in progress.
    if (n >= masters) await patiently(() => redis.cluster('REPLICATE', own[n % masters] as string));
  }
  const nodesOf = async (key: string) => {
    const up = await nodeThatAnswers(nodes);
    const slot = Number(await up.redis.cluster('KEYSLOT', key));
    const ranges = (await up.redis.cluster('SLOTS')) as unknown as [number, number, ...[string, number][]][];
    const range = ranges.find(([from, to]) => from <= slot && slot <= to);
    const [, , ...addresses] = range ?? [0, 0];
    return addresses.map(([, port]) => nodes.find(({ server }) => server.port === port) as Node);
  };
  const cluster: Topology = {
    url: `redis+cluster://${nodes.map(({ server }) => `127.0.0.1:${server.port}`).join(',')}`,
    nodes,
    masterOf: async (key) => (await patiently(() => nodesOf(key)))[0] as Node,
    replicasOf: async (key) => (await patiently(() => nodesOf(key))).slice(1),
    async failOver(key) {
      const [before, next] = await patiently(() => nodesOf(key));
      await next?.redis.cluster('FAILOVER');
      await until(async () => (await nodesOf(key))[0] !== before, 'a replica takes over');
    },
    async revive(dead) {
      await Promise.all(dead.map(({ server }) => server.restart()));
    },
    whole: () =>
      until(async () => {
        const facts = await Promise.all(nodes.map(({ redis }) => redis.cluster('INFO')));
        if (!facts.every((info) => String(info).includes('cluster_state:ok'))) return false;
        const ranges = (await first.redis.cluster('SLOTS')) as unknown[][];
        return (
          ranges.length >= masters && ranges.every((it) => it.length === 3 + replicas) && areInStep(nodes)
        );
      }, 'the Cluster is whole'),
    stop: () => stopNodes(nodes),
  };
  await cluster.whole();
  return cluster;
}

/** Starts a primary with two replicas, and three Sentinels; the caller calls `stop`. */
export async function startSentinels(): Promise<Topology> {
  const folder = await mkdtemp(join(tmpdir(), 'medref-test-sentinels-'));
  const removeAtExit = () => rmSync(folder, { recursive: true, force: true });
  process.once('exit', removeAtExit);
  const nodes = await startNodes(3, () => quickReplicas);
  const [master, ...others] = nodes as [Node, Node, Node];
  for (const { redis } of others) await redis.replicaof('127.0.0.1', master.server.port);
  const sentinels = await Promise.all(
    [1, 2, 3].map((n) =>
      startSentinel(join(folder, `sentinel-${n}.conf`), { masterPort: master.server.port, quorum: 2 }),
    ),
  );
  const asked = sentinels.map(({ port }) => connectTo(port));
  const nodeAt = (port: unknown) => nodes.find(({ server }) => server.port === Number(port)) as Node;
  const masterNow = async () => {
    const addresses = await Promise.all(
      asked.map((sentinel) => sentinel.call('SENTINEL', 'GET-MASTER-ADDR-BY-NAME', masterName)),
    );
    const ports = new Set(addresses.map((address) => (address as string[])[1]));
    if (ports.size !== 1) throw new Error('The Sentinels do not agree.');
    return nodeAt([...ports][0]);
  };
  const sentinelsSay = async () => {
    const said = await Promise.all(
      ['MASTERS', `REPLICAS ${masterName}`].map((words) =>
        asked[0]?.call('SENTINEL', ...(words.split(' ') as [string])),
      ),
    );
    return `${JSON.stringify(said)}\n${await roles(nodes)}`;
  };
  const topology: Topology = {
    url: `redis+sentinel://${sentinels.map(({ port }) => `127.0.0.1:${port}`).join(',')}/${masterName}`,
    nodes,
    masterOf: () => patiently(masterNow),
    replicasOf: async () => {
      const now = await patiently(masterNow);
      return nodes.filter((node) => node !== now);
    },
    async failOver() {
      const before = await patiently(masterNow);
      // A Sentinel refuses if the last failover is too recent.
      await until(
        async () => (await asked[0]?.call('SENTINEL', 'FAILOVER', masterName)) === 'OK',
        'it begins',
      );
      await until(async () => (await masterNow()) !== before, 'a replica takes over');
    },
    async revive(dead) {
      await Promise.all(dead.map(({ server }) => server.restart()));
      await patiently(async () => {
        const now = await masterNow();
        const others = dead.filter((node) => node !== now);
        await Promise.all(others.map(({ redis }) => redis.replicaof('127.0.0.1', now.server.port)));
      });
    },
    whole: () =>
      until(
        async () => {
          const counts = await Promise.all(
            asked.map(async (sentinel) => {
              const others = (await sentinel.call('SENTINEL', 'SENTINELS', masterName)) as unknown[];
              const replicas = (await sentinel.call('SENTINEL', 'REPLICAS', masterName)) as unknown[];
              const areUp = !/s_down|disconnected/.test(JSON.stringify([others, replicas]));
              return areUp && others.length === 2 && replicas.length === 2;
            }),
          );
          return counts.every(Boolean) && (await areInStep(nodes)) && (await mastersAmong(nodes)) === 1;
        },
        'the Sentinels know each other and all replicas',
        sentinelsSay,
      ),
    async stop() {
      for (const sentinel of asked) sentinel.disconnect();
      await Promise.all(sentinels.map(({ child }) => child.stop()));
      await stopNodes(nodes);
      await rm(folder, { recursive: true, force: true });
      process.off('exit', removeAtExit);
    },
  };
  await topology.whole();
  return topology;
}

/** Makes a replica that returns synchronize at once, not after seconds. */
const quickReplicas = {
  'repl-diskless-sync-delay': '0',
  'repl-ping-replica-period': '1',
  'repl-timeout': '5',
};

async function startNodes(count: number, settings: () => Record<string, string>): Promise<Node[]> {
  return Promise.all(
    Array.from({ length: count }, async () => {
      const server = await startTestRedis({ appendOnly: true, settings: settings() });
      return { server, redis: connectTo(server.port) };
    }),
  );
}

async function stopNodes(nodes: readonly Node[]): Promise<void> {
  for (const { redis } of nodes) redis.disconnect();
  await Promise.all(nodes.map(({ server }) => server.stop()));
}

/** Opens a connection by which a test inspects a server. Its commands fail soon, and it reconnects forever. */
export function connectTo(port: number, password?: string): OneServer {
  const redis = new OneServer(port, '127.0.0.1', {
    ...(password && { password }),
    commandTimeout: 1_000,
    maxRetriesPerRequest: 0,
    retryStrategy: () => 50,
  });
  return redis.on('error', () => undefined);
}

/** The primary that a Sentinel watches, and the settings of the Sentinel. */
interface SentinelOptions {
  readonly masterPort: number;
  readonly quorum: number;
  /** More lines of its file. */
  readonly lines?: readonly string[];
  /** Whether it also has a port with TLS. */
  readonly hasTls?: boolean;
}

/** Starts a Sentinel, with its file at a path; the caller stops it. */
export async function startSentinel(
  file: string,
  { masterPort, quorum, lines: others = [], hasTls = false }: SentinelOptions,
): Promise<{ child: Child; port: number; tlsPort: number }> {
  for (let tries = 1; ; tries++) {
    const port = randomInt(20_000, 30_000);
    const tlsPort = port + 1;
    const lines = [
      ...[`port ${port}`, 'bind 127.0.0.1', 'daemonize no'],
      ...(hasTls ? [`tls-port ${tlsPort}`] : []),
      `sentinel monitor ${masterName} 127.0.0.1 ${masterPort} ${quorum}`,
      `sentinel down-after-milliseconds ${masterName} ${downAfterMs}`,
      `sentinel failover-timeout ${masterName} 3000`,
      `sentinel parallel-syncs ${masterName} 2`,
      ...others,
    ];
    await writeFile(file, `${lines.join('\n')}\n`);
    const child = await startChild(findRedisServer() as string, [file, '--sentinel']);
    child.process.unref(); // A Sentinel that a failed test did not stop does not keep mocha running; it ends with mocha.
    for (const stream of [child.process.stdout, child.process.stderr]) (stream as Socket).unref();
    const outcome = await Promise.race([answers(port), child.ended]);
    if (outcome === 'ready') return { child, port, tlsPort };
    await child.stop();
    if (tries === 5) throw new Error(`A Sentinel did not start: ${child.output.stdout}`);
  }
}

async function answers(port: number): Promise<'ready' | 'silent'> {
  const sentinel = connectTo(port);
  try {
    for (let tries = 0; tries < 200; tries++) {
      const reply = await sentinel.ping().catch((error: Error) => error.message);
      if (/PONG|NOAUTH/.test(reply)) return 'ready';
      await sleep(20);
    }
    return 'silent';
  } finally {
    sentinel.disconnect();
  }
}

async function mastersAmong(nodes: readonly Node[]): Promise<number> {
  const facts = await Promise.all(nodes.map(({ redis }) => redis.info('replication')));
  return facts.filter((info) => info.includes('role:master')).length;
}

/** Returns whether each replica has a link to its primary, and all writes of that primary. */
async function areInStep(nodes: readonly Node[]): Promise<boolean> {
  const facts = await Promise.all(nodes.map(({ redis }) => redis.info('replication')));
  return facts.every((info) => {
    if (info.includes('role:slave')) return info.includes('master_link_status:up');
    const offset = /master_repl_offset:(\d+)/.exec(info)?.[1];
    // A primary pings its replicas, and they confirm the ping later.
    return [...info.matchAll(/offset=(\d+),lag/g)].every(([, of]) => Number(offset) - Number(of) < 100);
  });
}

async function nodeThatAnswers(nodes: readonly Node[]): Promise<Node> {
  for (const node of nodes) {
    const info = await node.redis.cluster('INFO').catch(() => '');
    if (String(info).includes('cluster_state:ok')) return node;
  }
  return nodes[0] as Node;
}

/** Repeats a call for half a minute while a new server or a busy machine responds late. @throws the error of the last try */
export async function patiently<Reply>(ask: () => Promise<Reply>): Promise<Reply> {
  for (const deadline = Date.now() + patienceMs; ; await sleep(50)) {
    try {
      return await ask();
    } catch (error) {
      if (Date.now() > deadline) throw error;
    }
  }
}

/** Waits until a condition holds. @param state describes the state for the error. @throws Error after half a minute */
export async function until(
  holds: () => Promise<boolean>,
  what: string,
  state: () => Promise<string> = async () => '',
): Promise<void> {
  const deadline = Date.now() + patienceMs;
  while (!(await holds().catch(() => false))) {
    if (Date.now() > deadline) throw new Error(`It does not come about that ${what}. ${await state()}`);
    await sleep(50);
  }
}

/** Returns the role and the replication progress of each node. */
async function roles(nodes: readonly Node[]): Promise<string> {
  const facts = await Promise.all(nodes.map(({ redis }) => redis.info('replication').catch(String)));
  const lines = facts.map((info) =>
    info.match(/^(role|master_port|master_link_status|slave\d|master_repl_offset):.*$/gm),
  );
  return nodes
    .map(({ server }, n) => `${server.port}: ${lines[n]?.join(' ').replaceAll('\r', '')}`)
    .join('\n');
}
