// Tests faults of an upstream, each with the expected outcome of the import. All upstreams are real HTTP servers.

import type { ServerResponse } from 'node:http';
import { brotliCompressSync, createGzip, gzipSync } from 'node:zlib';
import { expect } from 'chai';
import type { ImportOutcome } from '../../../importer/report.ts';
import type { UpstreamLimits } from '../../../importer/upstream/access.ts';
import { products as productCollection } from '../../../shared/collections/products.ts';
import { readLastRejects } from '../../../shared/import-history.ts';
import { connectForWriting, type Redis } from '../../../shared/redis/connections.ts';
import { readLiveVersion } from '../../../shared/store/versions.ts';
import { importFrom, importRecords } from '../../support/importing.ts';
import { keepKeySpace } from '../../support/key-space.ts';
import { productKeys as keys, readRecords } from '../../support/keys.ts';
import { product, products } from '../../support/records.ts';
import { useRedis } from '../../support/redis-server.ts';
import {
  cutting,
  type Responder,
  refusing,
  sending,
  upstreamServers,
} from '../../support/upstream-server.ts';

/** One fault and its expected outcome. */
interface Fault {
  readonly respond: Responder;
  readonly outcome: ImportOutcome;
  /** The reason of a failure or refusal. */
  readonly reason?: RegExp;
  /** The first reject, or the first warning, of a publication. */
  readonly reject?: RegExp;
  readonly warning?: RegExp;
  readonly requests?: number;
  readonly limits?: Partial<UpstreamLimits>;
}

const live = products(100);
const list = JSON.stringify({ data: live });
const zipped = gzipSync(list);
/** Returns the list with a replacement in its last record. */
const changed = (from: string, to: string) => {
  const at = list.lastIndexOf(from);
  return list.slice(0, at) + to + list.slice(at + from.length);
};
const lastId = '"product":{"id":100';
const failing = (respond: Responder, reason: RegExp, rest: Partial<Fault> = {}): Fault => ({
  ...{ respond, outcome: 'failed', reason },
  ...rest,
});
const rejecting = (text: string, reject: RegExp): Fault => ({
  respond: sending(text),
  outcome: 'published',
  reject,
});
const paging =
  (pages: Record<string, (origin: string) => unknown>): Responder =>
  (response, request) => {
    const page = pages[request.url ?? ''] ?? pages['*'];
    response.end(JSON.stringify(page?.(`http://${request.headers.host}`)));
  };
const linesOf = (records: readonly unknown[]) =>
  records.map((record) => `${JSON.stringify(record)}\n`).join('');
const part = (from: number, to: number) => live.slice(from, to);
const next = (href: unknown) => ({ _links: { next: { href } } });
const endless =
  (start: string, more: string): Responder =>
  (response) => {
    response.write(start);
    const pour = (to: ServerResponse) => {
      while (to.writable && to.write(more));
      to.once('drain', () => pour(to));
    };
    pour(response);
  };

function impatient(): Responder {
  let asked = 0;
  return (response, request, nth) => {
    const hasWaited = performance.now() - asked > 990;
    if (nth === 1) asked = performance.now();
    const respond =
      nth === 1 ? refusing(429, { 'retry-after': '1' }) : hasWaited ? sending(list) : refusing(404);
    respond(response, request, nth);
  };
}

const faults: Record<string, Fault> = {
  'cut off after its first byte': failing(cutting(list.slice(0, 1)), /truncated/),
  'cut off in the middle of a record': failing(cutting(list.slice(0, 5_000)), /truncated/),
  'cut off between two records': failing(
    cutting(list.slice(0, list.indexOf(',{"product"', 9_000))),
    /truncated/,
  ),
  'cut off before its last byte': failing(cutting(list.slice(0, -1)), /truncated/),
  'shorter than its Content-Length': failing(
    cutting(list, { 'content-length': String(list.length + 9) }),
    /truncated/,
  ),
  'ended in order in the middle of a record': failing(sending(list.slice(0, 5_000)), /truncated/),
  'gzip that is truncated': failing(sending(zipped.subarray(0, 900)), /gzip data ends early/),
  'gzip that is corrupt': failing(sending(Buffer.concat([zipped.subarray(0, 300), zipped])), /corrupt gzip/),
  'a gzip bomb': failing((response) => {
    const bomb = createGzip();
    bomb.pipe(response);
    const blank = Buffer.alloc(1 << 20, ' ');
    let size = 0;
    const inflate = () => {
      while (size < 1 << 30 && !response.destroyed) {
        size += blank.length;
        if (!bomb.write(blank)) return void bomb.once('drain', inflate);
      }
      bomb.end();
    };
    inflate();
  }, /goes on for more than \d+ bytes .* without another record/),
  'a gzip bomb of small records': failing(
    sending(gzipSync(`[${'{"a":1},'.repeat(20_000)}{}]`)),
    /larger than 100000 bytes/,
    { limits: { bodyBytes: 100_000 } },
  ),
  'gzip of JSON Lines, with a zero byte before the second member': failing(
    sending(
      Buffer.concat([gzipSync(linesOf(part(0, 90))), Buffer.alloc(1), gzipSync(linesOf(part(90, 100)))]),
      {
        'content-type': 'application/x-ndjson',
      },
    ),
    /corrupt gzip data: the bytes after its first members are not gzip/,
  ),
  'JSON Lines without a length, which a reset cuts off between two lines': failing((response) => {
    const { socket } = response;
    socket?.write('HTTP/1.1 200 OK\r\ncontent-type: application/x-ndjson\r\n\r\n');
    socket?.write(linesOf(part(0, 90)), () => setTimeout(() => socket.resetAndDestroy(), 30));
  }, /without Content-Length or chunks, so a truncated list may look complete/),
  'plain text that is called gzip': {
    respond: sending(list, { 'content-encoding': 'gzip' }),
    outcome: 'unchanged',
  },
  'encoded as Brotli': failing(
    sending(brotliCompressSync(list), { 'content-encoding': 'br' }),
    /is not valid UTF-8/,
  ),
  'in UTF-16': failing(sending(Buffer.from(list, 'utf16le')), /not valid JSON/),
  'in Latin-1': failing(sending(Buffer.from(changed('DRUG 100', 'DRÜG 100'), 'latin1')), /not valid UTF-8/),
  'behind a byte order mark': { respond: sending(`\ufeff${list}`), outcome: 'unchanged' },
  'with half a character': failing(
    sending(Buffer.from(changed('DRUG 100', 'DRUG \u00e7')).subarray(0, -9)),
    /truncated/,
  ),
  'with a lone surrogate': { respond: sending(changed('DRUG 100', 'DRUG \\ud800')), outcome: 'published' },
  'with an id past 2^53': rejecting(
    changed(lastId, '"product":{"id":9007199254740993'),
    /\$\.product\.id must be an integer/,
  ),
  'with the id -0': rejecting(changed(lastId, '"product":{"id":-0'), /\$\.product\.id must be an integer/),
  'with the id 1e400': rejecting(
    changed(lastId, '"product":{"id":1e400'),
    /\$\.product\.id must be an integer/,
  ),
  'with an id that is nearly an integer': rejecting(
    changed(lastId, '"product":{"id":100.00000000000000001'),
    /\$\.product\.id must be an integer/,
  ),
  'with a member given twice': rejecting(
    changed(lastId, '"product":{"id":7,"id":100'),
    /\$\.product\.id is given more than once/,
  ),
  'with __proto__ as a member': {
    respond: sending(changed(lastId, '"__proto__":{"polluted":true},"product":{"id":100')),
    ...{ outcome: 'unchanged', warning: /\$\.__proto__ \(1 record\)/ },
  },
  'with a record nested 100,000 deep': rejecting(
    changed('"barcodes":[', `"deep":${'['.repeat(100_000)}${']'.repeat(100_000)},"barcodes":[`),
    /\$\.deep.* is nested deeper than 32 levels/,
  ),
  'with one record that never ends': failing(
    endless('{"data":[{"name":"', 'x'.repeat(100_000)),
    /goes on for more than \d+ bytes after its start without another record/,
  ),
  'with records that never end': failing(
    endless('{"data":[', `${'{"id":1},'.repeat(1_000)}`),
    /larger than 300000 bytes/,
    { limits: { bodyBytes: 300_000 } },
  ),
  'with white space that never ends': failing(
    endless('{"data":[', ' '.repeat(100_000)),
    /goes on for more than/,
  ),
  'a slow drip': failing(
    (response) => {
      const drip = setInterval(() => response.write(' '), 20);
      response.on('close', () => clearInterval(drip));
    },
    /too slowly/,
    { limits: { slowMs: 300 } },
  ),
  'silent in the middle': failing(
    (response) => void response.write(list.slice(0, 900)),
    /sent nothing during its body/,
    {
      limits: { idleMs: 200 },
    },
  ),
  'silent from the start': failing(() => undefined, /did not respond within/, {
    limits: { requestMs: 300 },
  }),
  'something that is not HTTP': failing(
    (response) => void response.socket?.end('SSH-2.0-OpenSSH\r\n'),
    /did not send an HTTP response/,
  ),
  HTML: failing(
    sending('<!doctype html><title>Maintenance</title>'),
    /is not JSON: it begins with "<!doctype.*\. This is an HTML page, such as a login or an error: check the URL/,
  ),
  'nothing at all': failing(sending(''), /is empty/),
  'an object without data': failing(sending({ items: live }), /without a "data" member/),
  'an error envelope': failing(
    sending({ success: false, data: { status: 500 } }),
    /"data" member that is an object/,
  ),
  'data given twice': failing(sending(`{"data":[],"data":${JSON.stringify(live)}}`), /two "data" members/),
  'something after its end': failing(sending(`${list}{"data":[]}`), /not valid JSON/),
  'an empty list': { respond: sending({ data: [] }), outcome: 'refused', reason: /no valid record/ },
  'a list of other things': {
    respond: sending(['a', 1, null]),
    outcome: 'refused',
    reason: /no valid record: 3 read, 3 rejected/,
  },
  'half of the list': { respond: sending(part(0, 50)), outcome: 'refused', reason: /50 of the 100 live ids/ },
  'answering 401': failing(refusing(401), /responded with 401 Unauthorized. medref sent no token/, {
    requests: 1,
  }),
  'answering 404': failing(refusing(404), /responded with 404 Not Found/, { requests: 1 }),
  'answering 204': failing(refusing(204), /responded with 204 No Content/, { requests: 1 }),
  'answering 500 for ever': failing(refusing(500), /responded with 500 .*, after 4 attempts/, {
    requests: 4,
  }),
  'answering 503 twice': {
    respond: (response, request, nth) => (nth < 3 ? refusing(503) : sending(list))(response, request, nth),
    ...{ outcome: 'unchanged', requests: 3 },
  },
  'answering 429 with Retry-After, and 404 to who does not wait': {
    respond: impatient(),
    ...{ outcome: 'unchanged', requests: 2 },
  },
  'answering 429 with a Retry-After of an hour': failing(
    refusing(429, { 'retry-after': '3600' }),
    /asks for a wait of 3600 s .*, longer than/,
    { requests: 1 },
  ),
  'a loop of redirects': failing(refusing(302, { location: '/list.json' }), /redirects more than 5 times/),
  'a redirect to a file': failing(
    refusing(302, { location: 'file:///etc/passwd' }),
    /redirects to a file: URL/,
  ),
  'a next page on another host': failing(
    paging({ '*': () => ({ data: part(0, 50), ...next('http://127.0.0.2:9/') }) }),
    /next page at another origin/,
    { requests: 1 },
  ),
  'a next page that leads back': failing(
    paging({
      '/list.json': () => ({ data: part(0, 50), ...next('/2') }),
      '/2': () => ({ data: part(50, 99), ...next('/list.json') }),
    }),
    /that was read before: a loop/,
    { requests: 2 },
  ),
  'pages that never end': failing(
    (response, request, nth) =>
      sending({ data: [product(nth)], _meta: { totalCount: 5 }, ...next(`/${nth}`) })(response, request, nth),
    /has a next page, although 6 records were read and its totalCount is 5/,
  ),
  'empty pages that never end': failing(
    (response, request, nth) =>
      sending({ data: nth === 1 ? live : [], ...next(`/${nth}`) })(response, request, nth),
    /empty page with a next page/,
  ),
  'a walk that ends before its totalCount': failing(
    sending({ data: part(0, 90), _meta: { totalCount: 100 } }),
    /truncated: its totalCount is 100/,
  ),
  'a total count that changes while it is walked': failing(
    (response, request, nth) =>
      sending({
        data: part(nth % 2 ? 0 : 50, nth % 2 ? 50 : 100),
        _meta: { totalCount: 100 + nth },
        ...(nth % 2 ? next('/2') : {}),
      })(response, request, nth),
    /changed while it was read: its totalCount/,
    { requests: 8 },
  ),
};

/** Describes the expected outcome and its message in words. */
function expectation({ outcome, reason, reject, warning, requests }: Fault): string {
  const tries = requests === undefined ? '' : ` (${requests} ${requests === 1 ? 'request' : 'requests'})`;
  if (reason) return `${outcome}${tries}: “${inWords(reason)}”`;
  if (reject) return `${outcome} without that record, which is kept as a reject: “${inWords(reject)}”`;
  if (warning) return `${outcome}, with the warning “${inWords(warning)}”`;
  return `${outcome}${tries}`;
}

/** Returns the text that a pattern looks for. */
function inWords({ source }: RegExp): string {
  return source.replaceAll('\\d+', '…').replaceAll('.*', '…').replaceAll('\\', '').replace(/… …/g, '…');
}

describe('a faulty upstream', () => {
  const server = useRedis();
  const startUpstream = upstreamServers();
  let redis: Redis;
  /** The number of the version that is live before the fault. */
  let liveBefore: number;
  let restore: () => Promise<void>;
  before(async () => {
    redis = await connectForWriting(server().url);
    const { version } = await importRecords(live, productCollection, { redisUrl: server().url });
    liveBefore = version as number;
    restore = await keepKeySpace(redis);
  });
  after(() => redis.disconnect());
  beforeEach(() => restore());

  for (const [what, fault] of Object.entries(faults)) {
    it(`with ${what}: ${expectation(fault)}`, async () => {
      const upstream = await startUpstream(fault.respond);
      const report = await importFrom(upstream.url(), productCollection, {
        redisUrl: server().url,
        upstreamLimits: { backoffMs: 2, ...fault.limits },
      });
      expect(report.reason ?? '').to.match(fault.reason ?? /^$/);
      expect(report.outcome).to.equal(fault.outcome);
      expect(report.read).to.equal(report.written + report.rejected);
      if (fault.warning) expect(report.warnings.join()).to.match(fault.warning);
      if (fault.requests) expect(upstream.requests).to.have.length(fault.requests);

      const published = fault.outcome === 'published';
      const version = await readLiveVersion(redis, keys);
      expect(version).to.have.property('version', published ? report.version : liveBefore);
      if (published) expect(report.version).to.be.above(liveBefore);
      const stored = await readRecords(redis, keys.content(version?.content ?? 0));
      const kept = fault.reject ? live.slice(0, -1) : live;
      if (published && !fault.reject) expect(stored).to.have.length(live.length);
      else expect(stored).to.deep.equal(kept.map((record) => JSON.stringify(record)));
      if (fault.reject) {
        const { total, rejects } = await readLastRejects(redis, keys);
        expect(total).to.equal(1);
        expect(`${rejects[0]?.path} ${rejects[0]?.reason}`).to.match(fault.reject);
      }
      expect(await redis.exists(keys.lock, keys.staged)).to.equal(0);
      expect(({} as { polluted?: boolean }).polluted).to.equal(undefined);
    });
  }

  it('with a redirect to another host: unchanged, and without the token', async () => {
    const seen: (string | undefined)[] = [];
    const other = await startUpstream((response, request) => {
      seen.push(request.headers.authorization);
      response.end(list);
    });
    const upstream = await startUpstream((response, request) => {
      seen.push(request.headers.authorization);
      refusing(302, { location: other.url().href })(response, request, 1);
    });
    const report = await importFrom(upstream.url(), productCollection, {
      redisUrl: server().url,
      upstream: { url: upstream.url(), token: 's3cret' },
    });
    expect(report.outcome).to.equal('unchanged');
    expect(seen).to.deep.equal(['Bearer s3cret', undefined]);
  });
});
