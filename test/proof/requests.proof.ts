// A hundred thousand generated requests, valid and damaged, whose bytes arrive in random pieces. Every response is read byte by
// byte. The process must survive, log no error, and have no more objects at the end than halfway.

import { connect } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { gunzipSync } from 'node:zlib';
import { expect } from 'chai';
import {
  type Arbitrary,
  array,
  boolean,
  constant,
  constantFrom,
  double,
  integer,
  oneof,
  record,
  sample,
  string,
  tuple,
  uint8Array,
} from 'fast-check';
import { products as productCollection } from '../../shared/collections/products.ts';
import { makeKeyText } from '../../shared/store/api-keys.ts';
import { importRecords } from '../support/importing.ts';
import { createKey, startMedref } from '../support/medref.ts';
import { products } from '../support/records.ts';
import { startTestRedis } from '../support/redis-server.ts';
import { faultsOf, type Responder, readAnswers } from './http-replies.ts';
import { isFull, note, noteCounts, seed } from './proof.ts';

const requests = isFull ? 100_000 : 5_000;

/** How many connections are open at once, and how many conversations are generated at once. */
const connections = 128;
const batch = 512;

/** A connection without bytes for this long is closed, in ms. After damaged bytes, the service may wait for more. */
const quietMs = { whole: 5_000, damaged: 300 };

/** How much the objects of the process may grow from halfway to the end, in MB. */
const mayGrowMb = 2;

/** One connection: its requests, the places where their bytes are cut, and their damage, if any. */
interface Conversation {
  readonly requests: readonly { readonly method: string; readonly bytes: string }[];
  readonly cuts: readonly number[];
  readonly damage: { readonly at: number; readonly kind: string; readonly bytes: Uint8Array } | null;
}

describe('an API process', function () {
  this.timeout(0);

  it(`responds to ${requests.toLocaleString('en')} generated requests as the contract says`, async () => {
    note(`SEED=${seed}`);
    const server = await startTestRedis();
    const { version } = await importRecords(products(250), productCollection, { redisUrl: server.url });
    const keys = [
      await createKey(server.url),
      await createKey(server.url, '--rate', '50/s'),
      await createKey(server.url, '--collections', 'companies'),
    ];
    const settings = { API_PORT: '0', ACCESS_LOG: 'off', NODE_OPTIONS: `--import=${memoryReporter}` };
    const api = startMedref(['serve', '--json'], { REDIS_URL: server.url, ...settings });
    try {
      const port = Number(new URL((await api.line(/"address":"([^"]+)"/))[1] as string).port);
      const talks = conversations(keys, Number(version));
      const found = new Found();
      const heapMb: number[] = [];
      for (let round = 0; found.sent < requests; round += 1) {
        const some = sample(talks, { numRuns: batch, seed: seed * 1_000 + round });
        const tried = inParallel(some, async (talk) => found.add(talk, await converse(port, talk)));
        await tried.catch(async (error) => {
          const { code, stderr } = (await Promise.race([api.ended, sleep(1_000)])) ?? {};
          throw code === undefined ? error : new Error(`The process ended with ${code}: ${stderr}`);
        });
        if (found.sent < (requests / 4) * (heapMb.length + 1)) continue;
        api.process.kill('SIGWINCH');
        const [, used] = await api.line(new RegExp(`^heap ${heapMb.length + 1} (.*)$`, 'm'));
        heapMb.push(Number(used));
        note(`${found.sent} requests: ${used} MB of objects`);
      }
      noteCounts(found.statuses);
      expect(found.faults.slice(0, 5), `SEED=${seed}`).to.deep.equal([]);
      if (isFull) expect(heapMb[3]).to.be.below((heapMb[1] as number) + mayGrowMb);
      api.process.kill('SIGTERM');
      const { code, stderr } = await api.ended;
      expect(code).to.equal(0);
      const errors = stderr.split('\n').filter((line) => line && !/"level":"?(?:warn|40)/.test(line));
      expect(errors.slice(0, 3)).to.deep.equal([]);
    } finally {
      api.process.kill('SIGKILL');
      await server.stop();
    }
  });
});

// ---- requests

type Weighted<Item> = readonly [weight: number, choice: Arbitrary<Item>];

const weighted = <Item>(...choices: Weighted<Item>[]): Arbitrary<Item> =>
  oneof(...choices.map(([weight, arbitrary]) => ({ weight, arbitrary })));

const damage = record({
  at: double({ min: 0, max: 1, noNaN: true }),
  kind: constantFrom('change', 'leave out', 'insert', 'repeat', 'end'),
  bytes: uint8Array({ minLength: 1, maxLength: 40 }),
});

function conversations(keys: readonly string[], version: number): Arbitrary<Conversation> {
  return record({
    requests: array(oneRequest(keys, version), { minLength: 1, maxLength: 8 }),
    cuts: array(double({ min: 0, max: 1, noNaN: true }), { maxLength: 6 }),
    damage: weighted<Conversation['damage']>([3, constant(null)], [1, damage]),
  });
}

const characters = (min: number, max: number) => integer({ min, max }).map((it) => String.fromCharCode(it));

/** Text that a target or a field may contain. */
const visible = string({ unit: characters(0x21, 0x7e) });
const fieldText = string({ unit: characters(0x20, 0xff).filter((it) => it !== '\x7f'), maxLength: 60 });
const anyText = oneof(string({ maxLength: 20, unit: 'grapheme' }).map(encodeURIComponent), visible);

function oneRequest(keys: readonly string[], version: number): Arbitrary<{ method: string; bytes: string }> {
  const others = ['POST', 'PUT', 'DELETE', 'PATCH', 'OPTIONS', 'TRACE', 'PROPFIND', 'QUERY'];
  return record({
    method: weighted([12, constant('GET')], [3, constant('HEAD')], [1, constantFrom(...others)]),
    target: target(version),
    host: weighted<readonly string[]>(
      [20, constant(['Host: a'])],
      [1, constantFrom([], ['Host: a', 'Host: b'], ['Host: ['], ['Host: a:99999'])],
    ),
    fields: array(field(keys), { maxLength: 5 }),
    key: weighted<string | undefined>(
      [10, constant(keys[0])],
      [3, constantFrom(...keys, undefined)],
      [1, oneof(constant(null).map(makeKeyText), visible)],
    ),
    isChunked: boolean(),
    body: weighted<string | null>([12, constant(null)], [1, string({ maxLength: 200 })]),
  }).map(({ method, target: to, host, fields, key, isChunked, body }) => {
    const lines = [`${method} ${to} HTTP/1.1`, ...host, ...fields];
    if (key !== undefined) lines.push(`Authorization: Bearer ${key}`);
    if (body === null) return { method, bytes: `${lines.join('\r\n')}\r\n\r\n` };
    const latin = Buffer.from(body).toString('latin1');
    const size = latin.length;
    lines.push(isChunked ? 'Transfer-Encoding: chunked' : `Content-Length: ${size}`);
    const chunk = size === 0 ? '' : `${size.toString(16)}\r\n${latin}\r\n`;
    return { method, bytes: `${lines.join('\r\n')}\r\n\r\n${isChunked ? `${chunk}0\r\n\r\n` : latin}` };
  });
}

/** Targets, separated by white space: correct, almost correct, or hostile. */
const fixedTargets = `/ /docs /openapi.json /health/live /health/ready * // /products/ /Products
  /products/../drugs /products%2F1 /%ff /% http://a/products /docs/../../etc/passwd`.split(/\s+/);

function target(version: number): Arbitrary<string> {
  const collection = constantFrom('products', 'drugs', 'companies');
  const id = weighted(
    [4, integer({ min: 1, max: 260 }).map(String)],
    [1, oneof(constantFrom('0', '01', '1e3', '-1', '9'.repeat(40)), anyText)],
  );
  const path = weighted(
    [6, collection.map((it) => `/${it}`)],
    [6, tuple(collection, id).map((it) => `/${it.join('/')}`)],
    [3, tuple(collection, constantFrom('changes', 'versions')).map((it) => `/${it.join('/')}`)],
    [1, constantFrom(...fixedTargets)],
    [1, anyText.map((it) => `/${it}`)],
  );
  const known = [String(version), String(version + 1), '1', 'dr', 'drug%201', '8699500000001', '1,2,3'];
  const value = weighted(
    [3, integer({ min: 0, max: 260 }).map(String)],
    [2, constantFrom(...known)],
    [1, anyText],
    [1, constantFrom('', '0', '%', '%zz', '%00', '%ff', '+', '9'.repeat(300))],
  );
  const names = ['page', 'per-page', 'name', 'barcode', 'drug', 'ids', 'version', 'since', 'x', '', '%'];
  const pair = weighted(
    [12, tuple(constantFrom(...names), value).map((it) => it.join('='))],
    [1, constantFrom('wait=0', 'wait=1', 'wait=61', 'wait=', 'wait=x', 'wait=1&wait=1')],
    [1, visible],
  );
  const usual = [
    ...[
      '',
      '?page=2',
      '?per-page=7&page=3',
      '?name=dr',
      '?ids=3,1,2',
      '?drug=1',
      '?name=drug%201&per-page=2',
    ],
    ...[`?version=${version}`, `?since=${version}`],
  ];
  const query = weighted(
    [3, constantFrom(...usual)],
    [2, array(pair, { maxLength: 3 }).map((it) => (it.length === 0 ? '' : `?${it.join('&')}`))],
  );
  return tuple(path, query).map((it) => it.join(''));
}

const fieldValues: Readonly<Record<string, readonly string[]>> = {
  'Accept-Encoding': ['gzip', 'gzip;q=0', 'identity;q=0', '*', 'br', 'gzip, br;q=0.5', ';;;', 'gzip;q=2'],
  Accept: ['application/json', 'application/x-ndjson', '*/*', 'text/html', 'a/b;q="', ','],
  'If-None-Match': ['*', 'W/"x"', '"', 'W/', '""'],
  'If-Modified-Since': ['Sun, 22 Nov 2026 00:00:00 GMT', 'yesterday', '0'],
  'X-Request-Id': ['mine', ' ', 'x'.repeat(128), 'x'.repeat(129), 'ü'],
  Expect: ['100-continue', 'more'],
  Range: ['bytes=0-1', 'bytes=-1', 'lines=1'],
  Connection: ['keep-alive', 'close', 'upgrade, x', 'x'],
  Upgrade: ['h2c', 'websocket'],
  Forwarded: ['for=1.2.3.4', 'for="[::1]:80";proto=https', '"'],
  'X-Forwarded-For': ['1.2.3.4, 5.6.7.8', ',', 'unknown'],
  Origin: ['https://a.example', 'null', ''],
  Cookie: ['a=b; c', '=', 'x'.repeat(3_000)],
};

function field(keys: readonly string[]): Arbitrary<string> {
  const credentials = [`Bearer ${keys[0]}`, 'Basic eDp5', 'Bearer', 'bearer  x'];
  const known = Object.entries({ ...fieldValues, Authorization: credentials });
  return oneof(
    ...known.map(([name, values]) => constantFrom(...values).map((it) => `${name}: ${it}`)),
    tuple(visible, fieldText).map(
      ([name, text]) => `X-${name.replace(/[^A-Za-z0-9-]/g, '')}: ${text.trim()}`,
    ),
  );
}

/** Returns the bytes of a connection, with their damage. */
function bytesOf({ requests: sent, damage }: Conversation): Buffer {
  const whole = Buffer.from(sent.map(({ bytes }) => bytes).join(''), 'latin1');
  if (damage === null) return Buffer.concat([whole, last]);
  const at = Math.floor(damage.at * whole.length);
  const [before, after] = [whole.subarray(0, at), whole.subarray(at)];
  const { length } = damage.bytes;
  if (damage.kind === 'end') return before;
  if (damage.kind === 'leave out') return Buffer.concat([before, after.subarray(length), last]);
  if (damage.kind === 'insert') return Buffer.concat([before, damage.bytes, after, last]);
  if (damage.kind === 'repeat') return Buffer.concat([before, after.subarray(0, length), after, last]);
  return Buffer.concat([before, damage.bytes, after.subarray(length), last]);
}

/** The last request of a connection; the service closes the connection after it. */
const last = Buffer.from('GET /health/live HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n');

// ---- responses

/** Sends the pieces of a conversation. @returns all bytes received until the service closes the connection or is silent */
function converse(port: number, talk: Conversation): Promise<Buffer> {
  const bytes = bytesOf(talk);
  const cuts = talk.cuts.map((it) => Math.floor(it * bytes.length)).sort((a, b) => a - b);
  return new Promise((resolve, reject) => {
    const chunks: Buffer[] = [];
    const socket = connect(port, '127.0.0.1').setNoDelay();
    const end = () => {
      socket.destroy();
      resolve(Buffer.concat(chunks));
    };
    const send = (from: number, [to = bytes.length, ...more]: readonly number[]) => {
      if (socket.destroyed) return;
      socket.write(bytes.subarray(from, to));
      if (to < bytes.length) setImmediate(send, to, more);
    };
    socket.once('connect', () => send(0, cuts)).on('data', (chunk) => chunks.push(chunk));
    socket.once('end', end).setTimeout(talk.damage === null ? quietMs.whole : quietMs.damaged, end);
    socket.once('error', (error: NodeJS.ErrnoException) =>
      ['ECONNRESET', 'EPIPE'].includes(error.code ?? '') ? end() : reject(error),
    );
  });
}

class Found {
  sent = 0;
  damaged = 0;
  readonly statuses = new Map<number, number>();
  readonly faults: string[] = [];

  add(talk: Conversation, bytes: Buffer): void {
    this.sent += talk.requests.length + 1;
    if (talk.damage !== null) this.damaged += 1;
    const methods = talk.damage === null ? [...talk.requests.map(({ method }) => method), 'GET'] : null;
    const { answers, fault } = readAnswers(bytes, methods);
    for (const { status } of answers) this.statuses.set(status, (this.statuses.get(status) ?? 0) + 1);
    const faults = fault === null ? [] : [fault];
    for (const answer of answers) faults.push(...faultsOf(answer, gunzipSync));
    if (methods !== null && !isWhole(methods.length, answers))
      faults.push(`Of ${methods.length} requests ${answers.length} were answered.`);
    for (const it of faults.slice(0, 1)) this.faults.push(`${it} Asked: ${shown(bytesOf(talk))}`);
  }
}

/** Returns whether each request has its response: all of them, or all up to a response that closes the connection. */
function isWhole(asked: number, answers: readonly Responder[]): boolean {
  return answers.length === asked || answers.at(-1)?.headers.get('connection') === 'close';
}

function shown(bytes: Buffer): string {
  return JSON.stringify(bytes.toString('latin1')).slice(0, 600);
}

async function inParallel<Item>(items: readonly Item[], act: (item: Item) => Promise<void>): Promise<void> {
  const left = [...items];
  const work = async () => {
    for (let item = left.pop(); item !== undefined; item = left.pop()) await act(item);
  };
  await Promise.all(Array.from({ length: connections }, work));
}

/** A module that a process loads first. On SIGWINCH it collects garbage, and prints how many MB of objects are left. */
const memoryReporter = `data:text/javascript,${encodeURIComponent(`
  import { setFlagsFromString } from 'node:v8';
  import { runInNewContext } from 'node:vm';
  setFlagsFromString('--expose-gc');
  const collect = runInNewContext('gc');
  let count = 0;
  process.on('SIGWINCH', () => setTimeout(() => {
    for (let n = 0; n < 3; n += 1) collect();
    const used = (process.memoryUsage().heapUsed / 1e6).toFixed(1);
    process.stdout.write('heap ' + (count += 1) + ' ' + used + String.fromCharCode(10));
  }, 500));`)}`;
