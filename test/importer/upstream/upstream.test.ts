// Tests the upstream: the requests to it, its accepted responses, and the messages when it fails.

import { mkdir, mkdtemp, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { pathToFileURL } from 'node:url';
import { gzipSync } from 'node:zlib';
import { expect } from 'chai';
import { UpstreamError, urlText } from '../../../importer/upstream/access.ts';
import type { UpstreamDocument, Validators } from '../../../importer/upstream/body.ts';
import { createUpstream, type Upstream, type UpstreamOptions } from '../../../importer/upstream/upstream.ts';
import {
  closedPort,
  cutting,
  type Responder,
  refusing,
  sending,
  startDeafServer,
  startTwoSchemeServer,
  upstreamServers,
  whyNoTls,
} from '../../support/upstream-server.ts';

const LIST = JSON.stringify({ data: [{ id: 1, name: 'Aşı' }] });

describe('upstream', () => {
  const start = upstreamServers();
  const open: Upstream[] = [];
  afterEach(() => Promise.all(open.splice(0).map((upstream) => upstream.close())));

  function upstreamWith(options: UpstreamOptions = {}): Upstream {
    const upstream = createUpstream({ ...options, limits: { backoffMs: 2, ...options.limits } });
    open.push(upstream);
    return upstream;
  }

  async function openDocument(
    url: URL,
    options?: UpstreamOptions,
    validators?: Validators,
  ): Promise<UpstreamDocument> {
    const document = await upstreamWith(options).open(url, validators);
    if ('notModified' in document) throw new Error('the upstream answered that nothing has changed');
    return document;
  }

  async function read(url: URL, options?: UpstreamOptions): Promise<string> {
    return textOf(await openDocument(url, options));
  }

  async function reasonOf(url: URL, options?: UpstreamOptions): Promise<string> {
    const error = await failureOf(read(url, options));
    expect(error).to.be.instanceOf(UpstreamError);
    expect((error as Error).message).to.match(/^(https?|file):\/\/.*\.$/);
    return (error as Error).message;
  }

  describe('requests', () => {
    it('JSON Lines before JSON, gzip, with a user agent; JSON first for URLs with parameters', async () => {
      const server = await start(sending(LIST));
      expect(await read(server.url())).to.equal(LIST);
      const headers = server.requests[0]?.headers ?? {};
      expect(headers.accept).to.match(/^application\/x-ndjson, application\/json;q=0\.9/);
      await read(new URL('?page=2', server.url()));
      expect(server.requests[1]?.headers.accept).to.match(/^application\/json, application\/x-ndjson;q=0\.9/);
      expect(headers['accept-encoding']).to.equal('gzip');
      expect(headers['user-agent']).to.equal('medref');
      expect(headers).not.to.have.any.keys('authorization', 'if-none-match', 'if-modified-since');
    });

    it('with the token as Bearer', async () => {
      const server = await start(sending(LIST));
      await read(server.url(), { token: 's3cret' });
      expect(server.requests[0]?.headers.authorization).to.equal('Bearer s3cret');
    });

    it('conditionally, if it has validators', async () => {
      const server = await start(refusing(304));
      const validators = { etag: 'W/"a"', lastModified: 'Tue, 01 Jul 2025 00:00:00 GMT' };
      const found = await upstreamWith().open(server.url(), validators);
      expect(found).to.deep.equal({ notModified: true, version: null });
      expect(server.requests[0]?.headers['if-none-match']).to.equal(validators.etag);
      expect(server.requests[0]?.headers['if-modified-since']).to.equal(validators.lastModified);
    });

    it('and returns the version and the validators', async () => {
      const headers = {
        'medref-version': '7',
        etag: '"x"',
        'last-modified': 'Tue, 01 Jul 2025 00:00:00 GMT',
      };
      const server = await start(sending(LIST, headers));
      const document = await openDocument(server.url());
      expect(document.version).to.equal('7');
      expect(document.validators).to.deep.equal({ etag: '"x"', lastModified: headers['last-modified'] });
    });
  });

  describe('keeps a Last-Modified', () => {
    const second = 'Tue, 01 Jul 2025 10:00:00 GMT';
    for (const [what, date, kept] of [
      ['of a second before the answer', 'Tue, 01 Jul 2025 10:00:01 GMT', second],
      ['but none of the very second of the answer, in which the document may change again', second, null],
      ['but none that is later than the answer', 'Tue, 01 Jul 2025 09:59:59 GMT', null],
      ['but none where the answer does not tell when it was made', 'soon', null],
    ] as const) {
      it(what, async () => {
        const server = await start(sending(LIST, { date, 'last-modified': second }));
        const document = await openDocument(server.url());
        expect(document.validators.lastModified).to.equal(kept);
        document.close();
      });
    }
  });

  describe('follows redirects', () => {
    for (const status of [301, 302, 303, 307, 308]) {
      it(`of status ${status}, with the token, within the origin`, async () => {
        const server = await start((response, request, nth) =>
          request.url === '/new/list.jsonl'
            ? sending(LIST)(response, request, nth)
            : refusing(status, { location: 'new/list.jsonl' })(response, request, nth),
        );
        const document = await openDocument(server.url('/list'), { token: 't' });
        expect(await textOf(document)).to.equal(LIST);
        expect(document.url.href).to.equal(`${server.origin}/new/list.jsonl`);
        expect(document.lines).to.equal(true);
        expect(server.requests.map(({ headers }) => headers.authorization)).to.deep.equal([
          'Bearer t',
          'Bearer t',
        ]);
      });
    }

    it('to another origin without the token, even back to the first', async () => {
      const home = await start((response, request, nth) =>
        request.url === '/back'
          ? sending(LIST)(response, request, nth)
          : refusing(302, { location: `${other.origin}/there` })(response, request, nth),
      );
      const other = await start((response) =>
        refusing(302, { location: `${home.origin}/back` })(response, response.req, 1),
      );
      expect(await read(home.url(), { token: 't' })).to.equal(LIST);
      expect(other.requests[0]?.headers).not.to.have.property('authorization');
      expect(home.requests.map(({ headers }) => headers.authorization)).to.deep.equal([
        'Bearer t',
        undefined,
      ]);
    });

    describe(`between http and https${whyNoTls ? ` (not tried: ${whyNoTls})` : ''}`, () => {
      needingTls();

      for (const [from, to] of [
        ['https', 'http'],
        ['http', 'https'],
      ]) {
        it(`from ${from} to ${to} without the token, even on one host and port`, async () => {
          const server = await startTwoSchemeServer((response, request, scheme) => {
            const location = `${to}://${request.headers.host}/list.json`;
            (scheme === from ? refusing(307, { location }) : sending(LIST))(response, request, 1);
          });
          try {
            const url = new URL(`${from}://127.0.0.1:${server.port}/list.json`);
            expect(await read(url, { token: 's3cret', ca: server.certificate })).to.equal(LIST);
            expect(server.requests).to.deep.equal([
              [from, 'Bearer s3cret'],
              [to, undefined],
            ]);
          } finally {
            await server.close();
          }
        });
      }
    });

    it('but not to other schemes or invalid URLs', async () => {
      const away = await start(refusing(302, { location: 'file:///etc/passwd' }));
      expect(await reasonOf(away.url())).to.contain('redirects to a file: URL');
      const nowhere = await start(refusing(302, { location: 'http://[' }));
      expect(await reasonOf(nowhere.url())).to.contain('not a URL');
      const silent = await start(refusing(302));
      expect(await reasonOf(silent.url())).to.contain('not a URL');
    });
  });

  describe('fails at once', () => {
    it('on status 403, and says whether it sent a token', async () => {
      const server = await start(refusing(403));
      expect(await reasonOf(server.url(), { token: 'old' })).to.contain(
        '403 Forbidden. medref sent the token of its setting, which may have expired: ask the operator of upstream',
      );
    });

    for (const [status, name] of [
      [400, '400 Bad Request'],
      [401, '401 Unauthorized. medref sent no token'],
      [403, '403 Forbidden'],
      [404, '404 Not Found'],
      [410, '410 Gone'],
      [201, '201 Created'],
      [204, '204 No Content'],
      [206, '206 Partial Content'],
      [300, '300 Multiple Choices'],
      [304, '304 Not Modified'],
    ] as const) {
      it(`on status ${status}, and names it`, async () => {
        const server = await start(refusing(status));
        expect(await reasonOf(server.url())).to.contain(`responded with ${name}`);
        expect(server.requests.length).to.equal(1);
      });
    }

    it('without the credentials or query of the URL in the message', async () => {
      const server = await start(refusing(404));
      const url = server.url('/list?key=s3cret#part');
      url.username = 'me';
      url.password = 'hidden';
      const reason = await reasonOf(url, { token: 't0ken' });
      expect(reason).to.contain(`${server.origin}/list responded with`);
      expect(reason).not.to.match(/s3cret|me:|hidden|t0ken|part/);
      expect(urlText(url)).to.equal(`${server.origin}/list`);
    });
  });

  describe('skips informational responses', () => {
    const answering =
      (...texts: string[]): Responder =>
      async (response) => {
        for (const text of texts) {
          response.socket?.write(text);
          await sleep(20);
        }
      };
    const hints = 'HTTP/1.1 103 Early Hints\r\nlink: </style.css>; rel=preload\r\netag: "hint"\r\n\r\n';
    const final = `HTTP/1.1 200 OK\r\ncontent-length: ${Buffer.byteLength(LIST)}\r\netag: "list"\r\n\r\n${LIST}`;

    for (const [what, texts] of Object.entries({
      'one before the real one': [hints, final],
      'several of them, in one piece': [`${hints}HTTP/1.1 102 Processing\r\n\r\n${hints}${final}`],
    })) {
      it(`${what}`, async () => {
        const server = await start(answering(...texts));
        const document = await openDocument(server.url());
        expect(document.validators.etag).to.equal('"list"');
        expect(await textOf(document)).to.equal(LIST);
        expect(server.requests).to.have.length(1);
      });
    }
  });

  describe('retries', () => {
    for (const status of [408, 429, 500, 502, 503, 504]) {
      it(`after ${status}, and accepts the third response`, async () => {
        const server = await start((response, request, nth) =>
          (nth < 3 ? refusing(status) : sending(LIST))(response, request, nth),
        );
        expect(await read(server.url())).to.equal(LIST);
        expect(server.requests.length).to.equal(3);
      });
    }

    it('after a connection closed before the response', async () => {
      const server = await start((response, request, nth) => {
        if (nth === 1) response.socket?.destroy();
        else sending(LIST)(response, request, nth);
      });
      expect(await read(server.url())).to.equal(LIST);
    });

    it('a refused connection, then reports it', async () => {
      const url = new URL(`http://127.0.0.1:${await closedPort()}/list`);
      expect(await reasonOf(url)).to.contain('/list refused the connection, after 4 attempts');
    });

    it('unless the server does not speak TLS, and then names no certificate', async () => {
      const server = await start(sending(LIST));
      const reason = await reasonOf(new URL(server.url().href.replace('http:', 'https:')));
      expect(reason).to.match(
        / does not speak TLS \(ERR_SSL_\w+\)\. Check whether its URL begins with http: /,
      );
      expect(reason).not.to.contain('certificate');
    });

    it('unless the certificate is invalid, and then says so', async function () {
      if (whyNoTls) this.skip();
      const server = await startTwoSchemeServer((response, request) => sending(LIST)(response, request, 1));
      try {
        const reason = await reasonOf(new URL(`https://127.0.0.1:${server.port}/list`));
        expect(reason).to.match(/ has an invalid certificate \(DEPTH_ZERO_SELF_SIGNED_CERT\)\. /);
        expect(server.requests).to.deep.equal([]);
      } finally {
        await server.close();
      }
    });

    it('unless the certificate has expired, and then does not blame the trusted ones', async function () {
      if (whyNoTls) this.skip();
      const server = await startTwoSchemeServer(() => undefined, { isExpired: true });
      try {
        const url = new URL(`https://127.0.0.1:${server.port}/list`);
        const reason = await reasonOf(url, { ca: server.certificate });
        expect(reason).to.match(
          / has an expired certificate \(CERT_HAS_EXPIRED\)\. Its operator has to renew it\.$/,
        );
      } finally {
        await server.close();
      }
    });

    it('a connection timeout', async () => {
      const deaf = await startDeafServer();
      try {
        const reason = await reasonOf(deaf.url, { limits: { attempts: 2, connectMs: 100 } });
        expect(reason).to.contain('did not accept a connection in time, after 2 attempts');
      } finally {
        await deaf.close();
      }
    });

    it('a response timeout', async () => {
      const server = await start((response, request, nth) => {
        if (nth === 2) sending(LIST)(response, request, nth);
      });
      const silent = await start(() => {});
      const [list, reason] = await Promise.all([
        read(server.url(), { limits: { headersMs: 50 } }),
        reasonOf(silent.url(), { limits: { headersMs: 50, attempts: 2 } }),
      ]);
      expect(list).to.equal(LIST);
      expect(reason).to.contain('did not start to respond in time, after 2 attempts');
    });

    it('only within the time for one request', async () => {
      const server = await start(() => {});
      const began = performance.now();
      const reason = await reasonOf(server.url(), { limits: { requestMs: 150 } });
      expect(performance.now() - began).to.be.within(140, 10_000);
      expect(reason).to.contain('did not respond within 0.2 s');
      expect(server.requests.length).to.equal(1);
    });

    it('unless the wait would exceed that time', async () => {
      const server = await start(refusing(500));
      const began = performance.now();
      await reasonOf(server.url(), { limits: { requestMs: 4000, backoffMs: 16_000 } });
      expect(performance.now() - began).to.be.below(7_900); // The wait alone would be at least 8 s.
      expect(server.requests.length).to.equal(1);
    });

    it('without leaving a connection open', async () => {
      const endless: Responder = (response) => {
        response.writeHead(500);
        const drip = setInterval(() => response.write('x'.repeat(50_000)), 1);
        response.on('close', () => clearInterval(drip));
      };
      const server = await start((response, request, nth) =>
        (nth < 4 ? endless : sending(LIST))(response, request, nth),
      );
      expect(await read(server.url())).to.equal(LIST);
      const soon = performance.now() + 3000;
      while ((await server.openConnections()) > 1 && performance.now() < soon) await sleep(20);
      expect(await server.openConnections()).to.be.at.most(1);
    });
  });

  describe('honours Retry-After', () => {
    async function waitAfter(retryAfter: string, options: UpstreamOptions = {}): Promise<number> {
      const server = await start((response, request, nth) =>
        (nth === 1 ? refusing(503, { 'retry-after': retryAfter }) : sending(LIST))(response, request, nth),
      );
      const began = performance.now();
      await read(server.url(), options);
      return performance.now() - began;
    }

    it('in seconds', async () => {
      expect(await waitAfter('1')).to.be.within(990, 10_000);
    });

    it('unless it is past or invalid', async () => {
      // A wait as long as the time limit of this request would fail the test.
      const limits = { requestMs: 3_000 };
      for (const retryAfter of ['Tue, 01 Jul 2025 00:00:00 GMT', 'soon', '-60', '0'])
        expect(await waitAfter(retryAfter, { limits }), retryAfter).to.be.below(3_000);
    });

    it('by failing at once if the wait is too long', async () => {
      const inTwoMinutes = new Date(Date.now() + 120_000).toUTCString();
      for (const [retryAfter, wait] of [
        ['120', /asks for a wait of 120 s \(Retry-After\), longer than the (60|59\.\d) s/],
        ['61', /asks for a wait of 61 s/],
        ['99999999999', /asks for a wait of 2147483648 s/],
        ['9'.repeat(400), /asks for a wait of 2147483648 s/],
        [inTwoMinutes, /asks for a wait of 1[12]\d(\.\d)? s/],
      ] as const) {
        const server = await start(refusing(429, { 'retry-after': retryAfter }));
        const reason = await reasonOf(server.url());
        expect(reason)
          .to.match(/responded with 429 Too Many Requests, and asks/)
          .and.match(wait);
        expect(server.requests.length).to.equal(1);
      }
    });
  });

  describe('reports how much of a body has arrived', () => {
    it('with the total, if the server sent it', async () => {
      const bytes = gzipSync(JSON.stringify(Array.from({ length: 5_000 }, (_, i) => i)));
      const server = await start(sending(bytes, { 'content-length': String(bytes.length) }));
      const document = await openDocument(server.url());
      expect(document.arrival()).to.deep.equal({ bytes: 0, of: bytes.length });
      await textOf(document);
      expect(document.arrival()).to.deep.equal({ bytes: bytes.length, of: bytes.length });
    });

    it('without the total, for chunks', async () => {
      const server = await start((response) => response.write('[1]', () => response.end()));
      const document = await openDocument(server.url());
      await textOf(document);
      expect(document.arrival()).to.deep.equal({ bytes: 3, of: null });
    });
  });

  describe('reads a body', () => {
    it('with gzip, whatever its headers say', async () => {
      const plain = await start(sending(gzipSync(LIST)));
      expect(await read(plain.url())).to.equal(LIST);
      const declared = await start(sending(gzipSync(LIST), { 'content-encoding': 'gzip' }));
      expect(await read(declared.url('/list.json.gz'))).to.equal(LIST);
      const liar = await start(sending(LIST, { 'content-encoding': 'gzip' }));
      expect(await read(liar.url('/list.json.gz'))).to.equal(LIST);
    });

    it('with gzip twice, and not three times', async () => {
      const twice = await start(sending(gzipSync(gzipSync(LIST)), { 'content-encoding': 'gzip' }));
      expect(await read(twice.url())).to.equal(LIST);
      const thrice = gzipSync(LIST);
      const server = await start(sending(gzipSync(gzipSync(thrice))));
      const document = await openDocument(server.url());
      expect(Buffer.concat(await chunksOf(document)).equals(thrice)).to.equal(true);
    });

    it('of several gzip members', async () => {
      const server = await start(
        sending(Buffer.concat([gzipSync(LIST.slice(0, 9)), gzipSync(LIST.slice(9))])),
      );
      expect(await read(server.url())).to.equal(LIST);
    });

    it('to its end, or reports that it is truncated', async () => {
      const bodies = [LIST, gzipSync(LIST), gzipSync(gzipSync(LIST))].map((body) => Buffer.from(body));
      for (const body of bodies) {
        for (const length of [0, 1, 2, 3, 12, body.length - 9, body.length - 1]) {
          const part = body.subarray(0, length);
          const counted = await start(cutting(part, { 'content-length': String(body.length) }));
          expect(await reasonOf(counted.url()), `counted ${length}`).to.contain('is truncated');
          const chunked = await start(cutting(part));
          expect(await reasonOf(chunked.url()), `chunked ${length}`).to.contain('is truncated');
        }
      }
    });

    it('unless zero bytes follow its gzip data, after which zlib ignores everything', async () => {
      const member = gzipSync(LIST);
      for (const rest of [
        [Buffer.alloc(1)],
        [Buffer.alloc(512)],
        [Buffer.alloc(3), member],
        [member, Buffer.alloc(2)],
      ]) {
        const body = Buffer.concat([member, ...rest]);
        for (const sent of [body, gzipSync(body)]) {
          const server = await start(sending(sent));
          expect(await reasonOf(server.url()), `${sent.length}`).to.contain('are not gzip');
        }
        const inParts = await start(async (response) => {
          for (const part of [member, ...rest]) {
            response.write(part);
            await sleep(20);
          }
          response.end();
        });
        expect(await reasonOf(inParts.url())).to.contain('are not gzip');
      }
    });

    it('without an announced end, however slowly it is read', async () => {
      const body = `[${'{"a":1},'.repeat(100_000)}{}]`;
      const server = await start(({ socket }) => {
        socket?.end(`HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n\r\n${body}`);
      });
      const upstream = createUpstream({});
      open.push(upstream);
      const document = await upstream.open(server.url());
      if ('notModified' in document) throw new Error('not modified');
      let text = '';
      for await (const chunk of document.body) {
        text += Buffer.from(chunk).toString();
        await sleep(20);
      }
      expect(text === body).to.equal(true);
    });

    it('unless it is JSON Lines without an announced end', async () => {
      const server = await start(({ socket }) => {
        socket?.end(`HTTP/1.1 200 OK\r\ncontent-type: application/x-ndjson\r\n\r\n${LIST}\n`);
      });
      expect(await reasonOf(server.url())).to.contain('without Content-Length or chunks');
    });

    it('as slowly as its reader', async () => {
      const body = 'x'.repeat(3_000_000);
      const server = await start(sending(body));
      const document = await openDocument(server.url(), {
        limits: { slowMs: 30, idleMs: 60, slowBytesPerSecond: 1e7 },
      });
      let size = 0;
      for await (const chunk of document.body) {
        if (size < 300_000) await sleep(80);
        size += chunk.length;
      }
      expect(size).to.equal(body.length);
    });

    it('unless it exceeds the limit when decoded', async () => {
      const server = await start(sending(gzipSync(' '.repeat(200_000))));
      expect(await reasonOf(server.url(), { limits: { bodyBytes: 199_999 } })).to.contain(
        'larger than 199999 bytes',
      );
      expect((await read(server.url(), { limits: { bodyBytes: 200_000 } })).length).to.equal(200_000);
    });

    it('and closes the connection if closed early', async () => {
      let closed: () => void;
      const isClosed = new Promise<void>((resolve) => {
        closed = resolve;
      });
      const server = await start((response) => {
        const flood = setInterval(() => response.write('x'.repeat(10_000)), 1);
        response.on('close', () => {
          clearInterval(flood);
          closed();
        });
      });
      const document = await openDocument(server.url());
      for await (const _ of document.body) break;
      document.close();
      await isClosed;
    });
  });

  describe('detects JSON Lines', () => {
    for (const path of ['/a.jsonl', '/a.ndjson', '/a.JSONL.gz', '/a.ndjson.gz?b=c.json']) {
      it(`by the path ${path}`, async () => {
        const server = await start(sending(LIST));
        expect((await openDocument(server.url(path))).lines).to.equal(true);
      });
    }

    for (const type of [
      'application/x-ndjson',
      'application/ndjson; charset=utf-8',
      'application/jsonl',
      'application/x-jsonl',
      'application/jsonlines',
      'Application/X-JsonLines',
      'application/json-lines',
    ]) {
      it(`by the content type ${type}`, async () => {
        const server = await start(sending(LIST, { 'content-type': type }));
        expect((await openDocument(server.url())).lines).to.equal(true);
      });
    }

    it('in contrast to one document', async () => {
      const server = await start(sending(LIST, { 'content-type': 'application/json; profile=x-ndjson' }));
      expect((await openDocument(server.url('/jsonl/a.jsonl.json'))).lines).to.equal(false);
    });
  });

  describe('reads files', () => {
    let folder: string;
    before(async () => {
      folder = await mkdtemp(join(tmpdir(), 'medref-upstream-'));
    });
    after(() => rm(folder, { recursive: true }));

    async function fileWith(name: string, content: string | Uint8Array): Promise<URL> {
      await writeFile(join(folder, name), content);
      return pathToFileURL(join(folder, name));
    }

    it('plain, compressed, and with names that need escaping', async () => {
      expect(await read(await fileWith('a.json', LIST))).to.equal(LIST);
      expect(await read(await fileWith('ş %41?.json', gzipSync(LIST)))).to.equal(LIST);
      const document = await openDocument(await fileWith('a.jsonl.gz', gzipSync(LIST)));
      expect(document.lines).to.equal(true);
      expect(document.version).to.equal(null);
      expect(document.validators).to.deep.equal({ etag: null, lastModified: null });
      document.close();
    });

    it('and reports their problems', async () => {
      expect(await reasonOf(pathToFileURL(join(folder, 'none.json')))).to.match(
        /none\.json does not exist\. Check/,
      );
      expect(await reasonOf(pathToFileURL(folder))).to.contain('is not a file');
      expect(await reasonOf(new URL('file://elsewhere/list.json'))).to.contain('has a host');
      expect(await reasonOf(await fileWith('cut.gz', gzipSync(LIST).subarray(0, 20)))).to.contain(
        'is truncated',
      );
    });
  });

  describe('reads the next files of a list', () => {
    let folder: string;
    let first: URL;
    beforeEach(async () => {
      folder = await mkdtemp(join(tmpdir(), 'medref-upstream-'));
      await mkdir(join(folder, 'lists', 'more'), { recursive: true });
      for (const name of [
        'lists/1.json',
        'lists/2.json',
        'lists/more/3.json',
        'lists/..4.json',
        'outside.json',
        'listsx.json',
      ])
        await writeFile(join(folder, name), LIST);
      first = pathToFileURL(join(folder, 'lists/1.json'));
    });
    afterEach(() => rm(folder, { recursive: true }));

    async function openAfterFirst(href: string, start = first): Promise<string> {
      const upstream = upstreamWith();
      ((await upstream.open(start)) as UpstreamDocument).close();
      const next = (await upstream.open(new URL(href, start))) as UpstreamDocument;
      return textOf(next);
    }

    it('in its folder, subfolders and links inside it', async () => {
      await symlink('more/3.json', join(folder, 'lists/linked.json'));
      for (const href of ['2.json', 'more/3.json', 'more/../2.json', '..4.json', 'linked.json'])
        expect(await openAfterFirst(href), href).to.equal(LIST);
      await symlink('lists', join(folder, 'current'));
      expect(await openAfterFirst('2.json', pathToFileURL(join(folder, 'current/1.json')))).to.equal(LIST);
    });

    it('and none outside, by path or link, without revealing what exists', async () => {
      await symlink('../outside.json', join(folder, 'lists/leak.json'));
      await symlink('..', join(folder, 'lists/up'));
      for (const href of [
        ...[
          '/etc/passwd',
          '/etc/nothing-there',
          '../outside.json',
          '..%2foutside.json',
          '../listsx.json',
          '..',
        ],
        ...['leak.json', 'up/outside.json', '%2e%2e/outside.json'],
      ]) {
        const error = await failureOf(openAfterFirst(href));
        expect(error, href).to.be.instanceOf(UpstreamError);
        expect((error as Error).message, href).to.match(
          /is outside the folder of the first page|ERR_INVALID_FILE_URL_PATH/,
        );
      }
    });
  });

  describe('ends with the reason of its signal', () => {
    const reason = new Error('enough');

    async function expectEnd(respond: Responder, options: UpstreamOptions = {}): Promise<void> {
      const server = await start(respond);
      const controller = new AbortController();
      const reading = failureOf(read(server.url(), { ...options, signal: controller.signal }));
      await sleep(60);
      controller.abort(reason);
      const began = performance.now();
      expect(await reading).to.equal(reason);
      expect(performance.now() - began).to.be.below(5_000);
    }

    it('before a request', async () => {
      const server = await start(sending(LIST));
      expect(await failureOf(read(server.url(), { signal: AbortSignal.abort(reason) }))).to.equal(reason);
      expect(server.requests.length).to.equal(0);
      const file = new URL(import.meta.url);
      expect(await failureOf(read(file, { signal: AbortSignal.abort(reason) }))).to.equal(reason);
    });

    it('while the next attempt is awaited', () =>
      expectEnd(refusing(500), { limits: { backoffMs: 30_000 } }));

    it('in the middle of a body', () => expectEnd((response) => response.write(LIST)));
  });
});

/** Skips the tests of a suite if no server can use TLS here. */
function needingTls(): void {
  before(function () {
    if (whyNoTls) this.skip();
  });
}

async function chunksOf(document: UpstreamDocument): Promise<Uint8Array[]> {
  const chunks: Uint8Array[] = [];
  for await (const chunk of document.body) chunks.push(chunk);
  return chunks;
}

async function textOf(document: UpstreamDocument): Promise<string> {
  return Buffer.concat(await chunksOf(document)).toString();
}

async function failureOf(promise: Promise<unknown>): Promise<unknown> {
  try {
    await promise;
  } catch (error) {
    return error;
  }
  throw new Error('it succeeded, where a failure was expected');
}
