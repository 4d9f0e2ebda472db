// Tests that text of upstream is shortened when medref repeats it: in reasons, warnings, rejects and the history.

import { expect } from 'chai';
import { startReport } from '../../importer/report.ts';
import { products as productCollection } from '../../shared/collections/products.ts';
import { connectForWriting, type Redis } from '../../shared/redis/connections.ts';
import { importFrom } from '../support/importing.ts';
import { productKeys as keys } from '../support/keys.ts';
import { product } from '../support/records.ts';
import { useRedis } from '../support/redis-server.ts';
import { type Responder, sending, upstreamServers } from '../support/upstream-server.ts';

const tenMegabytes = 'x'.repeat(10_000_000);
/** A text that a document may have between two records. */
const megabytes = 'x'.repeat(3_500_000);
/** A text that the headers of a response may have. */
const longHeader = 'x'.repeat(15_000);
const one = JSON.stringify(product(1));
const again = (text: string) => JSON.stringify({ ...product(1), published: text });

describe('text of an upstream', function () {
  this.timeout(60_000);
  const server = useRedis();
  const startUpstream = upstreamServers();
  let redis: Redis;
  before(async () => {
    redis = await connectForWriting(server().url);
  });
  after(() => redis.disconnect());
  beforeEach(() => redis.flushall());

  const page = (next: string, data = one) =>
    `{"data":[${data}],"_links":{"next":{"href":${JSON.stringify(next)}}}}`;
  const responses: Readonly<Record<string, Responder>> = {
    'a next page of 3 MB': sending(page(megabytes)),
    'a next page of 10 MB': sending(page(tenMegabytes)),
    'a next page on a host of a long name': sending(page(`http://${'a.'.repeat(3_000)}`)),
    'a next page with a long path': (response, request) =>
      request.url?.includes('xxx')
        ? response.writeHead(404).end()
        : sending(page(`/${'x'.repeat(7_000)}`))(response, request, 1),
    'a redirect to a long URL': (response) => response.writeHead(302, { location: `/${longHeader}` }).end(),
    'a redirect to a long scheme': (response) =>
      response.writeHead(302, { location: `${'x'.repeat(7_000)}:a` }).end(),
    'a long Content-Encoding': sending('[]', { 'content-encoding': longHeader }),
    'a long ETag and Last-Modified': sending(`[${one}]`, {
      etag: `"${longHeader.slice(0, 6_000)}"`,
      date: 'Sat, 21 Nov 2026 00:00:09 GMT',
      'last-modified': `Sat, 21 Nov 2026 00:00:00 GMT (${longHeader.slice(0, 6_000)})`,
    }),
    'a Medref-Version that is long, and then another': (response, request, nth) =>
      sending(page(`/${nth}`), { 'medref-version': `${nth}${longHeader}` })(response, request, nth),
    'a member of the envelope with a name of 3 MB': sending(`{"${megabytes}":1,"data":[${one}]}`),
    'a member of the envelope with a name of 10 MB': sending(`{"${tenMegabytes}":1,"data":[${one}]}`),
    'a flaw within a member of 3 MB': sending(
      `{"data":[],"_meta":{"${megabytes}":1,"${megabytes.slice(0, 9)}":2}}`,
    ),
    'a flaw within a member of a long name': sending(
      `{"data":[],"_meta":{"${megabytes.slice(0, 1_000_000)}":{"a":1,"a":2}}}`,
    ),
    'a totalCount that is a long text': sending(`{"data":[${one}],"_meta":{"totalCount":"${megabytes}"}}`),
    'a totalCount that is long, and then another': (response, request, nth) =>
      sending(
        `{"_meta":{"totalCount":"${nth}${megabytes.slice(0, 100_000)}"},"data":[${one}],"_links":{"next":{"href":"/${nth}"}}}`,
      )(response, request, nth),
    'a document that is no JSON': sending(tenMegabytes),
    'a record with a member of 3 MB that is not known': sending(
      `[${one.replace('{', `{"${megabytes}":1,`)}]`,
    ),
    'a record with 20,000 members that are not known': sending(
      `[${one.replace('{', `{${Array.from({ length: 20_000 }, (_, n) => `"x${n}":0,`).join('')}`)}]`,
    ),
    'records with 300 long members that are not known': sending(
      `[${one.replace('{', `{${Array.from({ length: 300 }, (_, n) => `"${n}${'x'.repeat(5_000)}":0,`).join('')}`)}]`,
    ),
    'a record with a flaw at a long path': sending(`[${one.replace('{', `{"${megabytes}":{"a":1,"a":2},`)}]`),
    'a record with a text of 3 MB where none belongs': sending(`[${again(megabytes)}]`),
    'a record with 20,000 barcodes': sending(
      `[${JSON.stringify({ ...product(1), barcodes: Array(20_000).fill(0) })}]`,
    ),
    'two hundred rejects with much text': sending(
      `[${Array.from({ length: 200 }, () => again('x'.repeat(9_000))).join()}]`,
    ),
  };
  for (const [what, respond] of Object.entries(responses)) {
    it(`is limited in messages and storage: ${what}`, async () => {
      const upstream = await startUpstream(respond);
      const report = await importFrom(upstream.url(), productCollection, {
        redisUrl: server().url,
        upstreamLimits: { attempts: 1 },
      });
      expect((report.reason ?? '').length, report.reason ?? '').to.be.below(1_000);
      expect(report.warnings.length).to.be.below(10);
      for (const warning of report.warnings) expect(warning.length).to.be.at.most(2_001);
      const [[, [, entry = '']] = ['', []]] = await redis.xrevrange(keys.imports, '+', '-', 'COUNT', 1);
      expect(entry.length, 'the report in the history').to.be.within(100, 5_000);
      for (const reject of await redis.lrange(keys.rejects, 0, -1)) expect(reject.length).to.be.below(10_000);
    });
  }

  it('is truncated in reports, and so are too many warnings', () => {
    const report = startReport('products');
    for (let n = 0; n < 250; n += 1) report.warn(`${n} ${'x'.repeat(5_000)}`);
    report.warn(`0 ${'x'.repeat(5_000)}`);
    const { reason, warnings } = report.end('failed', { reason: 'y'.repeat(5_000) });
    expect(reason).to.equal(`${'y'.repeat(2_000)}…`);
    expect(warnings).to.have.length(101);
    expect(warnings[0]).to.have.length(2_001);
    expect(warnings.at(-1)).to.equal('150 further warnings were left out.');
  });
});
