// What three kept versions take in a real Redis as they are stored, and with what did not change between them stored once, and
// what that costs an import, a read and the end of a version. Out: tables, for `npm run simulate -- --sharing`.

import { createHash } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { connectForWriting, type Redis } from '../../shared/redis/connections.ts';
import { Workspace } from '../workspace.ts';
import {
  type Course,
  courses,
  type StoredKey,
  type StoredVersion,
  storedVersions,
} from './three-versions.ts';

/** A way to store three versions. */
interface Layout {
  readonly name: string;
  /** The kinds of keys whose values are stored once, by their digests. */
  readonly shared: RegExp;
  /** Or: older versions have only what differs from the next one, field by field. */
  readonly isByDifference?: boolean;
}

const layouts: readonly Layout[] = [
  { name: 'each version whole, as it is', shared: /^$/ },
  { name: 'blocks by digest', shared: /blocks$/ },
  { name: 'pages of the search index by digest', shared: /entries$/ },
  { name: 'records by digest', shared: /^records$/ },
  { name: 'records, blocks and pages by digest', shared: /^records$|blocks$|entries$/ },
  { name: 'older versions: only what differs from the next', shared: /^$/, isByDifference: true },
];

const batch = 100;
const digestLength = 16;
const reads = 20_000;

/** Measures all of it, and tells it as tables. */
export async function sharingText(say: (line: string) => void): Promise<string> {
  const workspace = await Workspace.open();
  try {
    const tables: string[] = [];
    for (const course of courses) {
      say(`importing three versions: ${course.name}`);
      const versions = await storedVersions(workspace, course);
      tables.push(await memoryTable(workspace, course, versions, say));
      if (course === courses[1]) tables.push(await costTable(workspace, versions, say));
    }
    return tables.join('\n\n');
  } finally {
    await workspace.close();
  }
}

// ---- memory

async function memoryTable(
  workspace: Workspace,
  { name: courseName }: Course,
  versions: readonly StoredVersion[],
  say: (line: string) => void,
): Promise<string> {
  const lines: string[] = [];
  let whole: number | undefined;
  for (const layout of layouts) {
    const bytes = await withRedis(workspace, async (redis) => {
      const before = await usedMemory(redis);
      for (const nth of versions.keys()) await store(redis, layout, versions, nth);
      return (await usedMemory(redis)) - before;
    });
    whole ??= bytes;
    say(`${layout.name}: ${megabytes(bytes)} MB`);
    lines.push(`| ${layout.name} | ${megabytes(bytes)} | ${percent(1 - bytes / whole)} |`);
  }
  return [`| Three versions: ${courseName} | MB | Saved |`, '|---|---|---|', ...lines].join('\n');
}

/** Writes the nth version in a layout; those before it are there. */
async function store(
  redis: Redis,
  { shared, isByDifference = false }: Layout,
  versions: readonly StoredVersion[],
  nth: number,
): Promise<void> {
  for (const key of versions[nth] as StoredVersion) {
    const name = `${nth}:${key.kind}`;
    if (key.isSorted) await writeSorted(redis, name, key);
    else if (shared.test(key.kind)) await writeShared(redis, name, key);
    else await writeHash(redis, name, isByDifference ? differing(key, versions[nth + 1]) : key.fields);
  }
}

/** The fields that are not in the next version as they are here. */
function differing(key: StoredKey, next: StoredVersion | undefined): StoredKey['fields'] {
  const others = next?.find(({ kind }) => kind === key.kind)?.fields ?? [];
  const known = new Map(others.map(([field, value]) => [field.toString('latin1'), value]));
  return key.fields.filter(([field, value]) => known.get(field.toString('latin1'))?.equals(value) !== true);
}

async function writeHash(redis: Redis, key: string, fields: StoredKey['fields']): Promise<void> {
  for (const part of batches(fields)) await redis.hset(key, ...part.flat());
}

async function writeSorted(redis: Redis, key: string, { fields }: StoredKey): Promise<void> {
  for (const part of batches(fields)) await redis.zadd(key, ...part.flatMap(([member]) => [0, member]));
}

/** Each value once under its digest, without a count of who needs it; the version has only field and digest. */
async function writeShared(redis: Redis, key: string, { kind, fields }: StoredKey): Promise<void> {
  for (const part of batches(fields)) {
    const digests = part.map(([, value]) => digestOf(value));
    const known = (await redis.eval(exist, 1, `shared:${kind}`, ...digests)) as number[];
    const fresh = part.flatMap(([, value], i) => (known[i] === 1 ? [] : [digests[i] as Buffer, value]));
    if (fresh.length > 0) await redis.hset(`shared:${kind}`, ...fresh);
    await redis.hset(key, ...part.flatMap(([field], i) => [field, digests[i] as Buffer]));
  }
}

const exist = `local known = {}
for i, digest in ipairs(ARGV) do known[i] = redis.call('HEXISTS', KEYS[1], digest) end
return known`;

function digestOf(value: Buffer): Buffer {
  return createHash('sha256').update(value).digest().subarray(0, digestLength);
}

// ---- costs

/** What Redis and a client spend on records, once as they are and once by digest. */
async function costTable(
  workspace: Workspace,
  versions: readonly StoredVersion[],
  say: (line: string) => void,
): Promise<string> {
  const [whole, shared] = [layouts[0] as Layout, layouts[3] as Layout];
  const costs = new Map<string, string[]>();
  for (const layout of [whole, shared]) {
    await withRedis(workspace, async (redis) => {
      const note = async (what: string, per: number, unit: string, act: () => Promise<unknown>) => {
        const { cpu, wall } = await costOf(redis, act);
        say(`${layout.name}: ${what}`);
        const cell = `${(cpu / per).toFixed(1)} ${unit}, ${(wall / per).toFixed(1)} by the clock`;
        costs.set(what, [...(costs.get(what) ?? []), cell]);
      };
      const only = versions.map((keys) => keys.filter(({ kind }) => kind === 'records'));
      const ids = (only[2]?.[0]?.fields ?? []).map(([id]) => id);
      for (const nth of [0, 1]) await store(redis, layout, only, nth);
      const digest = String(await redis.script('LOAD', follow));
      await note('the third version is written, for a record', ids.length, 'µs', () =>
        store(redis, layout, only, 2),
      );
      const read = (asked: readonly Buffer[]) =>
        layout === shared ? readShared(redis, digest, asked) : readWhole(redis, asked);
      await note('one record is read', reads, 'µs', () => repeat(reads, (n) => read([at(ids, n)])));
      const ten = (n: number) => Array.from({ length: 10 }, (_, i) => at(ids, n + i));
      await note('ten records are read', reads / 4, 'µs', () => repeat(reads / 4, (n) => read(ten(n))));
      const leave = layout === shared ? () => leaveShared(redis, only[0]) : () => redis.unlink('0:records');
      await note('the oldest version leaves, in all', 1_000, 'ms', leave);
    });
  }
  const rows = [...costs].map(([what, cells]) => `| ${what} | ${cells.join(' | ')} |`);
  const head =
    '| CPU of Redis, and time of one client that waits for each reply | As it is | Records by digest |';
  return [head, '|---|---|---|', ...rows].join('\n');
}

function readWhole(redis: Redis, ids: readonly Buffer[]): Promise<unknown> {
  return redis.call('HMGET', '2:records', ...ids);
}

/** Two steps, in Redis itself: from a client, they would be two waits. */
function readShared(redis: Redis, digest: string, ids: readonly Buffer[]): Promise<unknown> {
  return redis.evalsha(digest, 2, '2:records', 'shared:records', ...ids);
}

const follow = `return redis.call('HMGET', KEYS[2], unpack(redis.call('HMGET', KEYS[1], unpack(ARGV))))`;

/** What no other version needs is looked for by the ids of the one that leaves. */
async function leaveShared(redis: Redis, version: StoredVersion | undefined): Promise<void> {
  for (const part of batches(version?.[0]?.fields ?? [])) {
    const ids = part.map(([id]) => id);
    await redis.eval(release, 4, '0:records', '1:records', '2:records', 'shared:records', ...ids);
  }
  await redis.unlink('0:records');
}

/** Without a count: a digest under another id, which another version might have, is passed over here. */
const release = `local own = redis.call('HMGET', KEYS[1], unpack(ARGV))
local next, last = redis.call('HMGET', KEYS[2], unpack(ARGV)), redis.call('HMGET', KEYS[3], unpack(ARGV))
for i, digest in ipairs(own) do
  if digest ~= next[i] and digest ~= last[i] then redis.call('HDEL', KEYS[4], digest) end
end`;

async function repeat(count: number, act: (n: number) => Promise<unknown>): Promise<void> {
  for (let n = 0; n < count; n++) await act(n * 7_919);
}

function at(ids: readonly Buffer[], n: number): Buffer {
  return ids[n % ids.length] as Buffer;
}

/** In µs. */
async function costOf(redis: Redis, act: () => Promise<unknown>): Promise<{ cpu: number; wall: number }> {
  const before = await usedCpu(redis);
  const startedAt = performance.now();
  await act();
  return { wall: (performance.now() - startedAt) * 1_000, cpu: (await usedCpu(redis)) - before };
}

async function usedCpu(redis: Redis): Promise<number> {
  const info = await redis.info('cpu');
  const [system, user] = ['sys', 'user'].map((kind) =>
    Number(new RegExp(`^used_cpu_${kind}:([\\d.]+)`, 'm').exec(info)?.[1]),
  ) as [number, number];
  return (system + user) * 1e6;
}

// ---- Redis

async function withRedis<Result>(
  workspace: Workspace,
  act: (redis: Redis) => Promise<Result>,
): Promise<Result> {
  const server = await workspace.startRedis();
  const redis = await connectForWriting(server.url);
  try {
    return await act(redis);
  } finally {
    redis.disconnect();
    await server.stop();
  }
}

async function usedMemory(redis: Redis): Promise<number> {
  await sleep(500); // Buffers are given back a little later.
  return Number(/^used_memory:(\d+)/m.exec(await redis.info('memory'))?.[1]);
}

function batches<Item>(items: readonly Item[]): Item[][] {
  return Array.from({ length: Math.ceil(items.length / batch) }, (_, n) =>
    items.slice(n * batch, (n + 1) * batch),
  );
}

function megabytes(bytes: number): string {
  return (bytes / 1e6).toFixed(1);
}

function percent(share: number): string {
  return `${Math.round(share * 100) + 0} %`;
}
