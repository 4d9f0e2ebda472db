// Text that others send costs time that grows with its length, and not with the square of it. The one place where tests
// measure time, as a ratio: sixteen times as much text takes sixteen times as long, or some more; a square is 256 times.

import { request as httpRequest } from 'node:http';
import { BlockList } from 'node:net';
import type { Request } from '@hapi/hapi';
import { expect } from 'chai';
import { acceptsGzip } from '../api/answers/answer.ts';
import { isNotModified } from '../api/answers/conditional.ts';
import { prefersNdjson } from '../api/answers/ndjson.ts';
import { senderOf } from '../api/requests/forwarded.ts';
import { isHost } from '../api/requests/host.ts';
import { readPageRequest } from '../api/requests/paging.ts';
import { readId, readParameters } from '../api/requests/parameters.ts';
import { readSearch } from '../api/requests/search-parameters.ts';
import { isCronLine } from '../config/cron-line.ts';
import { readSettings } from '../config/settings.ts';
import { jsonPath } from '../importer/parse/json-path.ts';
import { createRecordParser } from '../importer/parse/records.ts';
import { urlText } from '../importer/upstream/error.ts';
import { namedUrl } from '../importer/upstream/named-url.ts';
import { createUpstream } from '../importer/upstream/upstream.ts';
import { createValidator } from '../importer/writing/record-validator.ts';
import { products as productCollection } from '../shared/collections/product.ts';
import { printable, printableJson } from '../shared/escapes.ts';
import { fold } from '../shared/formats/fold.ts';
import { unrankedEntryOf } from '../shared/formats/search-entries.ts';
import { shortened } from '../shared/shortened.ts';
import { useApi } from './support/api.ts';
import { importRecords } from './support/importing.ts';
import { product, products } from './support/records.ts';
import { useRedis } from './support/redis-server.ts';
import { startUpstreamServer } from './support/upstream-server.ts';

const small = 1_024;
const large = 16 * small;
const mostGrowth = 40;

/** White space before something else, and what else looks at first like what an expression is for. */
const filled = (size: number, filling: string, end = 'x', begin = '') =>
  begin + filling.repeat(Math.ceil((size - begin.length - end.length) / filling.length)) + end;

const takes = { name: 'a name', page: 'a count', 'per-page': 'a count', barcode: 'digits', since: 'a count' };
const accepting = (accept: string) => ({ raw: { req: { headers: { accept } } } }) as unknown as Request;
const validators = { etag: 'W/"a"', lastModified: 'Sat, 21 Nov 2026 00:00:00 GMT' };
const matches = (ifNoneMatch: string) =>
  isNotModified({ ifNoneMatch, ifModifiedSince: undefined }, validators);
const judge = createValidator(productCollection);
const base = new URL('http://127.0.0.1/list.json');
const named = (name: string) => product(1, { product: { id: 1, name } });
/** Marks of two classes, which normalization brings into another order. */
const marks = (size: number) => filled(size / 4, '\u0301', '') + filled(size / 4, '\u0323', 'x');

function parse(text: string, by: number): void {
  const parser = createRecordParser({ lines: false, recordsBefore: 0, mayQuote: true, maxDepth: 32 });
  for (let from = 0; from < text.length; from += by) {
    for (const record of parser.feed(text.slice(from, from + by))) record.raw();
  }
  parser.end();
}

type Place = readonly [place: string, hostile: (size: number) => string, call: (text: string) => unknown];

const local = new BlockList();
local.addAddress('127.0.0.1');
const forwarded = (text: string) => senderOf({ forwarded: text }, '127.0.0.1', local);

const places: readonly Place[] = [
  [
    'the query: pairs',
    (size) => filled(size, '&', 'page=1', '/products?'),
    (it) => readParameters(it, takes),
  ],
  [
    'the query: escapes',
    (size) => filled(size, '%20', '%', '/products?name='),
    (it) => readParameters(it, takes),
  ],
  [
    'the query: pluses',
    (size) => filled(size, '+', 'x', '/products?name='),
    (it) => readParameters(it, takes),
  ],
  ['a count of digits', (size) => filled(size, '9'), (it) => readPageRequest(new Map([['page', it]]))],
  ['an id of zeros', (size) => filled(size, '0'), readId],
  ['an id of digits', (size) => filled(size, '9', '9'), readId],
  ['a name of white space', (size) => filled(size, ' '), (it) => readSearch(new Map([['name', `x${it}`]]))],
  ['a name of U+0085', (size) => filled(size, '\u0085'), (it) => readSearch(new Map([['name', `x${it}`]]))],
  ['a name of marks', marks, (it) => readSearch(new Map([['name', it]]))],
  ['a name of controls', (size) => filled(size, '\u0001'), (it) => readSearch(new Map([['name', it]]))],
  ['a barcode', (size) => filled(size, '1'), (it) => readSearch(new Map([['barcode', it]]))],
  ['folding of white space', (size) => filled(size, '\u00a0', 'x', 'x'), fold],
  ['folding of words', (size) => filled(size, 'a ', '\t', 'x'), fold],
  ['folding of marks', marks, fold],
  ['folding of letters with marks', (size) => filled(size / 2, '\u1ea8'), fold],
  ['a Host of letters', (size) => filled(size, 'a', '/'), isHost],
  ['a Host of labels', (size) => filled(size, 'a.', '%'), isHost],
  ['a Host of Punycode', (size) => filled(size, 'a9', '', 'xn--'), isHost],
  ['a Host of digits', (size) => filled(size, ':1'), isHost],
  ['a Host of IPv6', (size) => filled(size, ':', ']', '['), isHost],
  ['If-None-Match: quotes', (size) => filled(size, '"'), matches],
  ['If-None-Match: one quote', (size) => filled(size, 'W/', '"'), matches],
  ['If-None-Match: tags', (size) => filled(size, 'W/"b",', '"'), matches],
  ['If-None-Match: white space', (size) => filled(size, ' ', '*', '*'), matches],
  ['Accept-Encoding: commas', (size) => filled(size, ',', 'gzip'), acceptsGzip],
  ['Accept-Encoding: codings', (size) => filled(size, 'a,', 'gzip'), acceptsGzip],
  ['Accept-Encoding: white space', (size) => filled(size, ' ', 'gzip;q=x'), acceptsGzip],
  ['Accept-Encoding: weights', (size) => filled(size, 'a;q=0.1,', 'gzip'), acceptsGzip],
  [
    'Accept: letters',
    (size) => filled(size, 'a', 'a', 'application/x-ndjson,'),
    (it) => prefersNdjson(accepting(it)),
  ],
  [
    'Accept: quotes',
    (size) => filled(size, 'a/b;a="', '', 'application/x-ndjson,'),
    (it) => prefersNdjson(accepting(it)),
  ],
  ['a next page: letters', (size) => filled(size, 'a'), (it) => namedUrl(it, base)],
  ['a next page: dots', (size) => filled(size, '../'), (it) => namedUrl(it, base)],
  ['a next page: Punycode', (size) => filled(size, 'a9', '', 'http://xn--'), (it) => namedUrl(it, base)],
  [
    'a URL in a reason',
    (size) => filled(size, '/a', '', 'http://a'),
    (it) => urlText(Object.assign(new URL(base), { pathname: it })),
  ],
  ['a text in a reason', (size) => filled(size, 'a'), (it) => shortened(it, 200)],
  ['a JSON path', (size) => filled(size, 'a', ' '), (it) => jsonPath(['x', it])],
  ['JSON in small pieces', (size) => filled(size, '0,', '0]]', '[['), (it) => parse(it, 1)],
  [
    'JSON in small pieces, nested',
    (size) => filled(size, '{"a":[0],"a":1},', '0]]', '[['),
    (it) => parse(it, 7),
  ],
  ['a string in small pieces', (size) => filled(size, 'a', '"]', '["'), (it) => parse(it, 1)],
  ['escapes in small pieces', (size) => filled(size, '\\u00e9', '"]', '["'), (it) => parse(it, 3)],
  ['a number of zeros', (size) => filled(size, '0', '1]', '[1.'), (it) => parse(it, 1_000)],
  [
    'a number of zeros, with an exponent',
    (size) => filled(size, '0', 'e0]', '[1.'),
    (it) => parse(it, 1_000),
  ],
  ['white space before JSON', (size) => filled(size, ' ', '[]'), (it) => parse(it, 1)],
  ['the name of a record: marks', marks, (it) => judge(named(it))],
  ['the name of a record: white space', (size) => filled(size, ' '), (it) => judge(named(it))],
  [
    'the name of a record: nothing that is seen',
    (size) => filled(size, '\u200b', ''),
    (it) => judge(named(it)),
  ],
  ['a member that is not known', (size) => filled(size, 'a', ' '), (it) => judge({ ...product(1), [it]: 1 })],
  [
    'the entries of a name',
    (size) => filled(size, '\x01\0'),
    (it) => unrankedEntryOf(productCollection, { record: named(it), id: 1, place: 1 }),
  ],
  ['a line for people', (size) => filled(size, '\u202e'), printable],
  ['a line of the log', (size) => filled(size, '\u202e'), printableJson],
  ['a cron line: white space', (size) => filled(size, ' ', '* * * *', '* '), isCronLine],
  [
    'a cron line: days that no month has',
    (size) => `0 0 ${filled(size / 2, '31,', '31')} ${filled(size / 2, '2,', '2')} *`,
    isCronLine,
  ],
  ['Forwarded: pairs', (size) => filled(size, 'a=b;', '"'), forwarded],
  ['Forwarded: elements', (size) => filled(size, 'for=127.0.0.1,', 'for='), forwarded],
  ['Forwarded: a quoted text', (size) => filled(size, '\\"', '', 'for="'), forwarded],
  ['Forwarded: white space', (size) => filled(size, ' ', '"'), forwarded],
  [
    'TRUSTED_PROXIES',
    (size) => filled(size, ' ', 'x'),
    (it) => expect(() => readSettings({ TRUSTED_PROXIES: it })).to.throw(),
  ],
  ['BASE_URL', (size) => filled(size, '/', 'x', 'http://a/'), (it) => readSettings({ BASE_URL: it })],
  [
    'a REDIS_URL that is refused',
    (size) => filled(size, 'redis:', '?'),
    (it) => expect(() => readSettings({ REDIS_URL: it })).to.throw(),
  ],
];

/** What takes longer than this, in ms, is not measured seven times but three times: a moment of the machine is less of it. */
const longEnough = 20;

/** The processor's time that this process has had, in ms: what else runs on the machine is not in it. */
function cpuMs(): number {
  const { user, system } = process.cpuUsage();
  return (user + system) / 1000;
}

/** The time of one call, the best of some; refusals are thrown, and take their time too. */
function bestTime(call: (text: string) => unknown, text: string, repetitions: number): number {
  const begin = cpuMs();
  let best = Number.POSITIVE_INFINITY;
  for (let run = 0; run < 7 && (run < 3 || cpuMs() - begin < longEnough); run += 1) {
    const start = cpuMs();
    for (let n = 0; n < repetitions; n += 1) quietly(call, text);
    best = Math.min(best, (cpuMs() - start) / repetitions);
  }
  return best;
}

function quietly(call: (text: string) => unknown, text: string): void {
  try {
    call(text);
  } catch {
    // What is hostile may be refused.
  }
}

/** By how much the time grows from the small text to the large one; measured again where a busy machine may be in it. */
function growth(hostile: (size: number) => string, call: (text: string) => unknown, mostTries = 6): number {
  const [short, long] = [hostile(small), hostile(large)];
  let least = Number.POSITIVE_INFINITY;
  for (let tries = 0; tries < mostTries && least > mostGrowth; tries += 1) {
    let repetitions = 1;
    while (bestTime(call, short, repetitions) * repetitions < 0.4) repetitions *= 4;
    const longRepetitions = Math.max(1, Math.round(repetitions / 16));
    least = Math.min(least, bestTime(call, long, longRepetitions) / bestTime(call, short, repetitions));
  }
  return least;
}

describe('hostile input takes time that grows as its length does', function () {
  this.timeout(60_000);

  for (const [place, hostile, call] of places) {
    it(`in ${place}`, () => {
      expect(growth(hostile, call)).to.be.below(mostGrowth);
    });
  }

  it('would be seen if it did not', () => {
    expect(
      growth(
        (size) => filled(size, ' '),
        (it) => /\s+$/.test(it),
        1,
      ),
    ).to.be.above(mostGrowth);
  });
});

/** The best of some times in ms. */
async function bestOf(run: () => Promise<unknown>): Promise<number> {
  let best = Number.POSITIVE_INFINITY;
  for (let n = 0; n < 7; n += 1) {
    const start = performance.now();
    await run();
    best = Math.min(best, performance.now() - start);
  }
  return best;
}

describe('a hostile request takes time that grows as its length does', function () {
  this.timeout(60_000);
  const server = useRedis();
  const api = useApi(server);
  before(() => importRecords(products(3), productCollection, { redisUrl: server().url }));

  /** What fits beside the other headers into the 16 KiB that a request may have. */
  const largest = large - 512;

  const requests: [
    what: string,
    of: (size: number) => { path?: string; headers?: Record<string, string> },
  ][] = [
    ['the name', (size) => ({ path: `/products?name=x${filled(size, '+')}` })],
    [
      'a name of marks',
      (size) => ({ path: `/products?name=${filled(size / 2, '%CC%81', '')}${filled(size / 2, '%CC%A3')}` }),
    ],
    ['the path', (size) => ({ path: filled(size, '/', '', '/products') })],
    ['a path of dots', (size) => ({ path: filled(size, '/..', '', '/products') })],
    ['a path of escapes', (size) => ({ path: filled(size, '%41', '', '/products/') })],
    ['an address as a proxy gets it', (size) => ({ path: filled(size, 'a9', '/products', 'http://xn--') })],
    ['the parameters', (size) => ({ path: filled(size, '&page=1', '', '/products?page=1') })],
    ['Accept', (size) => ({ headers: { accept: filled(size, 'a', 'a', 'application/x-ndjson,') } })],
    ['Accept-Encoding', (size) => ({ headers: { 'accept-encoding': filled(size, 'a;q=0.5,') } })],
    ['If-None-Match', (size) => ({ headers: { 'if-none-match': filled(size, '"') } })],
    ['If-Modified-Since', (size) => ({ headers: { 'if-modified-since': filled(size, 'a  ') } })],
    ['Authorization: spaces', (size) => ({ headers: { authorization: filled(size, ' ', '"', 'Bearer ') } })],
    ['Authorization: a key', (size) => ({ headers: { authorization: filled(size, '=', '"', 'Bearer a') } })],
    ['Cookie', (size) => ({ headers: { cookie: filled(size, 'a=";') } })],
    ['Content-Type', (size) => ({ headers: { 'content-type': filled(size, ' ', 'x', 'a/b') } })],
    ['Expect', (size) => ({ headers: { expect: filled(size, '100-') } })],
    ['Host', (size) => ({ headers: { host: filled(size, 'a9', '', 'xn--') } })],
    ['Origin', (size) => ({ headers: { origin: filled(size, 'a9', '', 'http://xn--') } })],
    ['X-Forwarded-For', (size) => ({ headers: { 'x-forwarded-for': filled(size, ' ,', '1') } })],
    ['Referer', (size) => ({ headers: { referer: filled(size, '/', 'x', 'http://') } })],
  ];
  for (const [what, of] of requests) {
    it(`in ${what}`, async () => {
      const ask = ({ path = '/products', headers = {} }: ReturnType<typeof of>) =>
        new Promise<void>((resolve, reject) => {
          const { hostname, port } = new URL(api().origin);
          const sent = httpRequest(
            {
              ...{ hostname, port, path, agent: false },
              headers: { authorization: `Bearer ${api().key}`, ...headers },
            },
            (response) => response.resume().on('end', resolve),
          );
          sent.on('error', reject).end();
        });
      const [short, long] = [of(small), of(largest)];
      let least = Number.POSITIVE_INFINITY;
      for (let tries = 0; tries < 3 && least > mostGrowth; tries += 1) {
        const first = await bestOf(() => ask(short));
        least = Math.min(least, (await bestOf(() => ask(long))) / first);
      }
      expect(least).to.be.below(mostGrowth);
    });
  }
});

describe('a hostile upstream takes time that grows as its headers do', function () {
  this.timeout(60_000);
  const largest = large - 512;

  const answers: [what: string, status: number, of: (size: number) => Record<string, string>][] = [
    ['Content-Encoding', 200, (size) => ({ 'content-encoding': filled(size, ' ', 'x', 'gzip,') })],
    ['Content-Type', 200, (size) => ({ 'content-type': filled(size, ' ', 'x', 'application/ndjson') })],
    ['Retry-After', 503, (size) => ({ 'retry-after': filled(size, '1 ') })],
    [
      'Retry-After as a date',
      503,
      (size) => ({ 'retry-after': filled(size, '(', 'x', 'Sat, 21 Nov 2026 ') }),
    ],
    ['Location', 302, (size) => ({ location: filled(size, 'a9', '', 'http://xn--') })],
    ['ETag', 200, (size) => ({ etag: filled(size, '"') })],
    ['Last-Modified', 200, (size) => ({ 'last-modified': filled(size, '(', 'x', 'Sat, 21 Nov 2026 ') })],
  ];
  for (const [what, status, of] of answers) {
    it(`in ${what}`, async () => {
      let headers: Record<string, string> = {};
      const server = await startUpstreamServer((response) => {
        response.writeHead(status, headers).end('[]');
      });
      try {
        const ask = async () => {
          const upstream = createUpstream({ limits: { tries: 1, redirects: 1 } });
          const document = await upstream.open(server.url()).catch(() => null);
          if (document && 'close' in document) document.close();
          await upstream.close();
        };
        let least = Number.POSITIVE_INFINITY;
        for (let tries = 0; tries < 3 && least > mostGrowth; tries += 1) {
          headers = of(small);
          const short = await bestOf(ask);
          headers = of(largest);
          least = Math.min(least, (await bestOf(ask)) / short);
        }
        expect(least).to.be.below(mostGrowth);
      } finally {
        await server.close();
      }
    });
  }
});
