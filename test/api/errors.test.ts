// Tests errors: their one shape, the order of checks, other methods, and malformed HTTP.

import { type AddressInfo, connect } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { expect } from 'chai';
import { pino } from 'pino';
import type { ReadModel } from '../../api/read/read-model.ts';
import { createServer } from '../../api/server.ts';
import { servedCollections } from '../../shared/collections/collections.ts';
import { products as productCollection } from '../../shared/collections/products.ts';
import { useApi } from '../support/api.ts';
import { importRecords } from '../support/importing.ts';
import { products } from '../support/records.ts';
import { useRedis } from '../support/redis-server.ts';
import { exchange, send, sendWithoutKey, type WireAnswer } from '../support/wire.ts';

const names: Record<number, string> = {
  400: 'Bad Request',
  401: 'Unauthorized',
  404: 'Not Found',
  405: 'Method Not Allowed',
  500: 'Internal Server Error',
  417: 'Expectation Failed',
  431: 'Request Header Fields Too Large',
  501: 'Not Implemented',
  505: 'HTTP Version Not Supported',
  503: 'Service Unavailable',
};

/** Only products are published here. Companies are the collection without a version. */
describe('errors', () => {
  const redis = useRedis();
  const api = useApi(redis);
  before(() => importRecords(products(30), productCollection, { redisUrl: redis().url }));

  function expectError({ headers, body, ...response }: WireAnswer, status: number): string {
    expect(response.status, body.toString()).to.equal(status);
    expect(headers['content-type']).to.equal('application/json');
    const error = JSON.parse(body.toString()) as { data: { message: string } };
    const { message } = error.data;
    expect(body.toString()).to.equal(
      `{"success":false,"data":{"name":"${names[status]}","message":${JSON.stringify(message)},"code":0,"status":${status}}}`,
    );
    expect(message).to.match(/^[A-Z].*[.]$/s);
    return message;
  }

  describe('have one shape, with members in this order:', () => {
    const cases: [status: number, path: string, key: boolean, method?: string][] = [
      [400, '/products?page=0', true],
      [400, '/products/x', true],
      [400, '/products/%zz', true],
      [400, '/%zz', true],
      [400, '/%ff', false],
      [400, '/products/%C3', false],
      [400, '/%ff', true, 'POST'],
      [401, '/products', false],
      [404, '/', true],
      [404, '/favicon.ico', false],
      [404, '/products/31', true],
      [405, '/products', true, 'POST'],
      [503, '/companies', true],
    ];
    for (const [status, path, key, method = 'GET'] of cases) {
      it(`${status} for ${method} ${path}`, async () => {
        expectError(await (key ? send : sendWithoutKey)(api(), path, { method }), status);
      });
    }

    const inside = /hapi|boom|redis|node|wrongtype|\.ts|\n\s*at /i;

    it('without internal details', async () => {
      for (const [status, path, key, method = 'GET'] of cases) {
        const response = await (key ? send : sendWithoutKey)(api(), path, { method });
        expectError(response, status);
        expect(response.body.toString()).not.to.match(inside);
        expect(response.headers).not.to.have.any.keys('server', 'x-powered-by');
      }
    });

    it('500 for a mistake in the code, with details only in the log', async () => {
      const logged: string[] = [];
      const mistake = () => Promise.reject(new Error('a mistake, in read-model.ts'));
      const server = await createServer({
        ...{ collections: servedCollections, host: '127.0.0.1', port: 0, baseUrl: undefined },
        readModel: { target: mistake, waits: { stop: () => undefined } } as unknown as ReadModel,
        apiKeys: {
          find: () => ({ id: '1', client: 'x', createdAt: '', expiresAt: null, rate: null }),
          isConfirmed: true,
        },
        clientVersions: { serving: () => undefined, reported: () => undefined },
        whyUnavailable: () => null,
        logger: pino({}, { write: (line: string) => void logged.push(line) }),
      });
      await server.start();
      try {
        const { port } = server.listener.address() as AddressInfo;
        const broken = { port, origin: `http://127.0.0.1:${port}`, key: 'any' };
        for (const method of ['GET', 'HEAD']) {
          const response = await send(broken, '/products/1', { method });
          if (method === 'GET') {
            expect(expectError(response, 500)).to.equal('Internal error; it has been logged.');
            expect(response.body.toString()).not.to.match(inside);
          }
          expect([response.status, 'server' in response.headers]).to.deep.equal([500, false]);
        }
      } finally {
        await server.stop();
      }
      const lines = logged.map((line) => JSON.parse(line));
      expect(lines.map(({ msg, path, err }) => [msg, path, err.message])).to.deep.equal([
        ...Array(2).fill(['A request failed.', '/products/1', 'a mistake, in read-model.ts']),
      ]);
    });
  });

  describe('are checked in the order path, key, method, parameters, record:', () => {
    const cases: [what: string, method: string, path: string, key: boolean, status: number][] = [
      ['path before key', 'GET', '/drug', false, 404],
      ['path before method', 'DELETE', '/drug', true, 404],
      ['path before key and method', 'POST', '/', false, 404],
      ['path before parameters', 'GET', '/drug?page=0', true, 404],
      ['path before id', 'GET', '/drug/x', true, 404],
      ['key before method', 'POST', '/products', false, 401],
      ['key before method, on a record', 'DELETE', '/products/1', false, 401],
      ['key before parameters', 'GET', '/products?page=0', false, 401],
      ['key before id', 'GET', '/products/x', false, 401],
      ['key before record', 'GET', '/products/31', false, 401],
      ['key before version', 'GET', '/companies', false, 401],
      ['method before parameters', 'PUT', '/products?page=0', true, 405],
      ['method before id', 'PUT', '/products/x', true, 405],
      ['method before record', 'PATCH', '/products/31', true, 405],
      ['method before version', 'POST', '/companies', true, 405],
      ['parameters before record', 'GET', '/products/31?x=1', true, 400],
      ['parameters before version', 'GET', '/companies?page=0', true, 400],
      ['id before version', 'GET', '/companies/0', true, 400],
      ['version before record', 'GET', '/companies/31', true, 503],
    ];
    for (const [what, method, path, key, status] of cases) {
      it(`${what} (${method} ${path} ${key ? 'with' : 'without'} a key is ${status})`, async () => {
        expectError(await (key ? send : sendWithoutKey)(api(), path, { method }), status);
      });
    }
  });

  describe('404', () => {
    for (const path of [
      '/',
      '//',
      '/x',
      '/health',
      '/health/',
      '/health/live/',
      '/health/live/x',
      '/Products',
      '/PRODUCTS',
      '/product',
      '/products.json',
      '/products/',
      '/products/1/',
      '/products//1',
      '/v1/products',
      '/__proto__',
      '/constructor',
      '/%00',
      '/%2e%2e',
      '/products%2F1',
      '/..%2fproducts',
    ]) {
      it(`is the response to ${path}, with and without a key, for any method`, async () => {
        for (const method of ['GET', 'HEAD', 'POST', 'OPTIONS']) {
          for (const ask of [send, sendWithoutKey]) {
            const response = await ask(api(), path, { method });
            if (method === 'HEAD') expect([response.status, response.body.length]).to.deep.equal([404, 0]);
            else expectError(response, 404);
            expect(response.headers).not.to.have.any.keys('allow', 'www-authenticate');
          }
        }
      });
    }
  });

  describe('405', () => {
    for (const path of ['/products', '/products/1', '/companies', '/health/live', '/health/ready']) {
      for (const method of [
        'POST',
        'PUT',
        'DELETE',
        'PATCH',
        'OPTIONS',
        'TRACE',
        'PROPFIND',
        'QUERY',
        'M-SEARCH',
      ]) {
        it(`is the response to ${method} ${path}`, async () => {
          const response = await send(api(), path, { method });
          expect(expectError(response, 405)).to.include(method);
          expect(response.headers.allow).to.equal('GET, HEAD');
        });
      }
    }

    const bodies: [what: string, headers: Record<string, string>, body: string][] = [
      ['JSON', { 'content-type': 'application/json' }, '{"a":1}'],
      ['JSON that is none', { 'content-type': 'application/json' }, '{"a":'],
      ['a form', { 'content-type': 'application/x-www-form-urlencoded' }, 'a=1&__proto__=2'],
      ['a multipart form without a boundary', { 'content-type': 'multipart/form-data' }, 'x'],
      ['a content type that is none', { 'content-type': '//;;' }, 'x'],
      ['an unknown content encoding', { 'content-encoding': 'zstd' }, 'x'],
      ['a gzip body that is none', { 'content-encoding': 'gzip' }, 'x'],
      ['a chunked body', { 'transfer-encoding': 'chunked' }, 'x'],
      ['3 MB', {}, 'x'.repeat(3_000_000)],
      ['a body to be continued', { expect: '100-continue' }, 'x'],
    ];
    for (const [what, headers, body] of bodies) {
      it(`is the response to a POST of ${what}`, async () => {
        const length = headers['transfer-encoding'] ? {} : { 'content-length': String(body.length) };
        const asked = { method: 'POST', headers: { ...headers, ...length }, body };
        expectError(await send(api(), '/products', asked), 405);
        expectError(await send(api(), '/health/live', asked), 405);
        expectError(await sendWithoutKey(api(), '/products', asked), 401);
        expectError(await sendWithoutKey(api(), '/nothing', asked), 404);
      });
    }

    it('does not wait for a missing body', async () => {
      const head = `POST /products HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer ${api().key}\r\n`;
      const [response, ...more] = await exchange(api(), `${head}Content-Length: 1000000\r\n\r\nx`);
      expectError(response as WireAnswer, 405);
      expect(more).to.be.empty;
    });

    it('does not wait for a body on unknown paths either: 404 and 400', async () => {
      for (const [path, status] of [
        ['/nothing', 404],
        ['/products/1/', 404],
        ['/%ff', 400],
        ['/products/%ff', 400],
      ] as const) {
        for (const body of ['Content-Length: 1000000\r\n\r\nx', 'Transfer-Encoding: chunked\r\n\r\n5\r\nx']) {
          for (const method of ['GET', 'POST']) {
            const asked = exchange(api(), `${method} ${path} HTTP/1.1\r\nHost: a\r\n${body}`);
            const responses = await Promise.race([asked, sleep(1_500).then(() => [])]);
            expect(responses.length, `responses to ${method} ${path}`).to.equal(1);
            expectError(responses[0] as WireAnswer, status);
          }
        }
      }
    });

    it('stops reading without a Host, too', async () => {
      const [response, ...more] = await exchange(
        api(),
        'POST /products HTTP/1.1\r\nContent-Length: 1000000\r\n\r\nx',
      );
      expectError(response as WireAnswer, 400);
      expect(response?.headers.connection).to.equal('close');
      expect(more).to.be.empty;
    });
  });

  describe('HEAD', () => {
    const cases: [status: number, what: string, path: string, headers: Record<string, string>][] = [
      [200, 'a list', '/products', {}],
      [200, 'a list in gzip', '/products', { 'accept-encoding': 'gzip' }],
      [200, 'a record', '/products/1', {}],
      [200, 'a page beyond the end', '/products?page=9', {}],
      [304, 'what has not been modified', '/products/1', { 'if-none-match': '*' }],
      [400, 'a bad parameter', '/products?page=0', {}],
      [404, 'an id that no record has', '/products/31', {}],
      [404, 'an unknown path', '/x', {}],
      [401, 'a wrong key', '/products', { authorization: 'Bearer x' }],
      [503, 'a collection without a version', '/companies', {}],
      [200, 'health', '/health/live', {}],
    ];
    for (const [status, what, path, headers] of cases) {
      it(`has the status and headers of GET and no body, for ${what}`, async () => {
        const [get, head] = [
          await send(api(), path, { headers }),
          await send(api(), path, { method: 'HEAD', headers }),
        ];
        const comparable = ({ date: _, 'x-request-id': __, ...rest }: WireAnswer['headers']) => rest;
        expect([get.status, head.status]).to.deep.equal([status, status]);
        expect(comparable(head.headers)).to.deep.equal(comparable(get.headers));
        expect(head.body).to.have.length(0);
      });
    }
  });

  it('ignores headers without meaning here', async () => {
    const headers: Record<string, string>[] = [
      { cookie: 'a="x y"; b=c d;;=' },
      { 'content-type': '///' },
      { accept: 'text/html' },
      { accept: ';;;' },
      { 'if-match': '"x"' },
      { 'if-range': 'x' },
      { origin: 'null' },
      { upgrade: 'h2c', connection: 'Upgrade, HTTP2-Settings', 'http2-settings': 'AAMAAABkAARAAAAAAAIAAAAA' },
      { expect: '100-continue' },
      { te: 'trailers' },
    ];
    for (const it of headers) {
      const { status, body } = await send(api(), '/products/1', { headers: it });
      expect([status, body.subarray(0, 8).toString()], JSON.stringify(it)).to.deep.equal([200, '{"data":']);
    }
  });

  it('closes the connection after an upgrade request, since later bytes are not read', async () => {
    const get = (fields: string) =>
      `GET /products/1 HTTP/1.1\r\nHost: a\r\n${fields}Authorization: Bearer ${api().key}\r\n\r\n`;
    const bytes = get('') + get('Upgrade: h2c\r\nConnection: upgrade\r\n') + get('');
    const responses = await exchange(api(), bytes);
    const found = responses.map(({ status, headers }) => [status, headers['connection']]);
    expect(found).to.deep.equal([
      [200, 'keep-alive'],
      [200, 'close'],
    ]);
  });

  describe('for malformed HTTP', () => {
    const get = (fields: string, target = '/products/1', method = 'GET') =>
      `${method} ${target} HTTP/1.1\r\n${fields}Authorization: Bearer ${api().key}\r\nConnection: close\r\n`;
    const host = 'Host: medref.example\r\n';
    const post = (fields: string, body: string) =>
      `POST /products HTTP/1.1\r\n${host}Authorization: Bearer ${api().key}\r\n${fields}\r\n${body}`;
    const cases: [what: string, bytes: () => string | Buffer, status: number][] = [
      ['no HTTP at all', () => 'garbage\r\n\r\n', 400],
      ['a TLS handshake', () => Buffer.from([0x16, 3, 1, 2, 0, 1, 0, 1, 0xfc, 3, 3]), 400],
      ['zero bytes', () => Buffer.alloc(64), 400],
      ['a megabyte of garbage', () => 'garbage '.repeat(131_072), 400],
      ['an empty method', () => ` /products HTTP/1.1\r\n${host}\r\n`, 400],
      ['an unknown method', () => `${get(host, '/products', 'FETCH')}\r\n`, 501],
      ['an unknown method that begins like a known one', () => `${get(host, '/products', 'GETS')}\r\n`, 501],
      ['an unknown method and a target that is none', () => `${get(host, '/a b', 'FETCH')}\r\n`, 400],
      ['an unknown method without a version', () => 'FETCH /products\r\n\r\n', 400],
      ['a method in lower case', () => `${get(host, '/products', 'get')}\r\n`, 501],
      ['no target', () => `GET HTTP/1.1\r\n${host}\r\n`, 400],
      ['a target without a slash', () => `${get(host, 'products')}\r\n`, 400],
      ['a target with a space', () => `${get(host, '/products?page=1 2')}\r\n`, 400],
      ['a target with letters that are not ASCII', () => `${get(host, '/products/ş')}\r\n`, 400],
      ['a target with a control character', () => `${get(host, '/products/\u0001')}\r\n`, 400],
      ['an absolute target that is none', () => `${get(host, 'http://')}\r\n`, 400],
      ['an asterisk as the target', () => `${get(host, '*', 'OPTIONS')}\r\n`, 400],
      ['a version that is none', () => `GET /products HTTP/x.y\r\n${host}\r\n`, 400],
      ['HTTP/1.2', () => `GET /products HTTP/1.2\r\n${host}\r\n`, 400],
      ['an HTTP/2 preface', () => 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n', 505],
      ['HTTP/2.0', () => `GET /products HTTP/2.0\r\n${host}\r\n`, 505],
      ['HTTP/0.9', () => `GET /products HTTP/0.9\r\n${host}\r\n`, 505],
      ['no version', () => `GET /products\r\n${host}\r\n`, 505],
      ['lines that end in LF alone', () => `${get(host)}\r\n`.replaceAll('\r\n', '\n'), 400],
      ['one header that ends in LF alone', () => `${get(`${host}X-A: b\nX-B: c\r\n`)}\r\n`, 400],
      ['a carriage return inside a header', () => `${get(`${host}X-A: b\rX-B: c\r\n`)}\r\n`, 400],
      ['a zero byte in a header', () => `${get(`${host}X-A: b\0c\r\n`)}\r\n`, 400],
      ['a folded header', () => `${get(`${host}X-A: b\r\n c\r\n`)}\r\n`, 400],
      ['a space before the colon', () => `${get(`${host}X-A : b\r\n`)}\r\n`, 400],
      ['a header without a colon', () => `${get(`${host}X-A\r\n`)}\r\n`, 400],
      ['a header without a name', () => `${get(`${host}: b\r\n`)}\r\n`, 400],
      ['a header name that is none', () => `${get(`${host}X(A): b\r\n`)}\r\n`, 400],
      ['a space before the first header', () => `${get(` ${host}`)}\r\n`, 400],
      ['no Host', () => `${get('')}\r\n`, 400],
      [
        'no Host, and a body that waits',
        () => `${get('Expect: 100-continue\r\nContent-Length: 1\r\n')}\r\n`,
        400,
      ],
      ['two Hosts', () => `${get(`${host}${host}`)}\r\n`, 400],
      ['two Hosts, written differently', () => `${get(`${host}hOST: b\r\n`)}\r\n`, 400],
      ...[
        '',
        'a b',
        'a/b',
        'a@b',
        'a?b',
        'a#b',
        'a\\b',
        '<a>',
        '"a"',
        'a|b',
        '[zz]',
        '[::1',
        '::1',
        'a:b',
        'a:99999',
        'a:-1',
        'a:80:80',
        '%',
        'a%zz',
        '1.2.3.999',
        'http://a',
        'ş',
        'a\tb',
      ].map((name): [string, () => string, number] => [
        `a Host that is none (${JSON.stringify(name)})`,
        () => `${get(`Host: ${name}\r\n`)}\r\n`,
        400,
      ]),
      ['a header of 20 KB', () => `${get(`${host}X-A: ${'a'.repeat(20_000)}\r\n`)}\r\n`, 431],
      [
        '1,000 headers of 20 bytes',
        () => `${get(`${host}${'X-A: 0123456789abcd\r\n'.repeat(1_000)}`)}\r\n`,
        431,
      ],
      ['a header of 2 MB', () => `${get(`${host}X-A: ${'a'.repeat(2_000_000)}\r\n`)}\r\n`, 431],
      ['a target of 2 MB', () => `${get(host, `/${'a'.repeat(2_000_000)}`)}\r\n`, 431],
      ...['', 'x', '-1', '+1', '1.0', '0x1', '1 1', '1, 1', '1,2', '99999999999999999999999'].map(
        (length): [string, () => string, number] => [
          `a Content-Length that is none (${JSON.stringify(length)})`,
          () => post(`Content-Length: ${length}\r\n`, 'x'),
          400,
        ],
      ),
      ['two different Content-Lengths', () => post('Content-Length: 1\r\nContent-Length: 2\r\n', 'xx'), 400],
      ['the same Content-Length twice', () => post('Content-Length: 1\r\nContent-Length: 1\r\n', 'x'), 400],
      [
        'both Content-Length and Transfer-Encoding',
        () => post('Content-Length: 4\r\nTransfer-Encoding: chunked\r\n', '0\r\n\r\n'),
        400,
      ],
      [
        'both, the other way round',
        () => post('Transfer-Encoding: chunked\r\nContent-Length: 4\r\n', '0\r\n\r\n'),
        400,
      ],
      [
        'chunked that is not the last encoding',
        () => post('Transfer-Encoding: chunked, gzip\r\n', '0\r\n\r\n'),
        400,
      ],
      ['an Expect that is not 100-continue', () => `${get(`${host}Expect: 200-ok\r\n`)}\r\n`, 417],
      ['CONNECT', () => 'CONNECT db.example:443 HTTP/1.1\r\nHost: db.example:443\r\n\r\n', 400],
      [
        'CONNECT with bytes behind it',
        () => `CONNECT a:443 HTTP/1.1\r\nHost: a\r\n\r\n${'x'.repeat(100_000)}`,
        400,
      ],
      ['CONNECT to a path of ours', () => 'CONNECT /products HTTP/1.1\r\nHost: a\r\n\r\n', 400],
    ];
    for (const [what, bytes, status] of cases) {
      it(`responds with ${status} once, in the usual shape, to ${what}, also if repeated, and continues`, async () => {
        for (let time = 1; time <= 2; time += 1) {
          const [response, ...more] = await exchange(api(), bytes());
          expectError(response as WireAnswer, status);
          expect(more).to.be.empty;
        }
        expect((await send(api(), '/products/1')).status).to.equal(200);
      });
    }

    for (const [what, body] of [
      ['a chunk size that is none', 'ZZ\r\nabc\r\n0\r\n\r\n'],
      ['a chunk longer than it says', '1\r\nabc\r\n0\r\n\r\n'],
      ['a good chunk and then a bad one', '3\r\nabc\r\nZZ\r\n'],
      ['a chunk size of 20 digits', 'FFFFFFFFFFFFFFFFFFFF\r\nabc\r\n'],
      ['a chunk extension of 100 KB', `3;${'x'.repeat(100_000)}\r\nabc\r\n0\r\n\r\n`],
      ['an unknown coding', ''],
    ] as const) {
      it(`responds once, in the usual shape, to a POST with ${what}, and closes the connection`, async () => {
        const coding = what === 'an unknown coding' ? 'sandwich' : 'chunked';
        const responses = await exchange(api(), post(`Transfer-Encoding: ${coding}\r\n`, body));
        expect(responses).to.have.length(1);
        const [response] = responses as [WireAnswer];
        expect(response.status).to.be.oneOf([400, 405, 413]);
        expect(JSON.parse(response.body.toString()).data.status).to.equal(response.status);
        expect((await send(api(), '/products/1')).status).to.equal(200);
      });
    }

    it('does not read the body of a request as another request', async () => {
      const hidden = `GET /products/2 HTTP/1.1\r\n${host}Authorization: Bearer ${api().key}\r\n\r\n`;
      const open = get(host).replace('Connection: close\r\n', '');
      for (const method of ['GET', 'HEAD', 'POST']) {
        const first = open.replace('GET', method);
        const bytes = `${first}Content-Length: ${hidden.length}\r\n\r\n${hidden}${get(host, '/products/3')}\r\n`;
        const text = (await exchangeText(api().port, bytes)).toString();
        expect(text, method).not.to.include('DRUG 2');
        expect(text.match(/HTTP\/1\.1 /g)?.length, method).to.be.at.most(2);
      }
    });

    it('does not read the end of a chunked body as another request unless it is one', async () => {
      const smuggled = post(
        'Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n',
        `0\r\n\r\nGET /products/2 HTTP/1.1\r\n${host}Authorization: Bearer ${api().key}\r\n\r\n`,
      );
      expect((await exchangeText(api().port, smuggled)).toString()).not.to.include('DRUG 2');
    });

    it('responds to good requests before a bad one on the connection', async () => {
      const open = get(host).replace('Connection: close\r\n', '');
      const good = `${open}\r\n`;
      const list = `${open.replace('/products/1', '/products?per-page=2')}\r\n`;
      for (const requests of [[good], [good, good], [list, good, list, good]]) {
        const responses = await exchange(api(), `${requests.join('')}garbage\r\n\r\n`);
        expect(responses.map(({ status }) => status)).to.deep.equal([...requests.map(() => 200), 400]);
        expectError(responses.at(-1) as WireAnswer, 400);
        expect(responses.at(-1)?.headers.connection).to.equal('close');
      }
    });

    it('responds to good requests before a CONNECT on the connection', async () => {
      const good = `${get(host).replace('Connection: close\r\n', '')}\r\n`;
      const responses = await exchange(api(), `${good}${good}CONNECT a:443 HTTP/1.1\r\nHost: a\r\n\r\n`);
      expect(responses.map(({ status }) => status)).to.deep.equal([200, 200, 400]);
    });

    it('responds to another protocol as to HTTP, since the parser reads it so', async () => {
      const [response, ...more] = await exchange(
        api(),
        `GET /products RTSP/1.0\r\n${host}Connection: close\r\n\r\n`,
      );
      expectError(response as WireAnswer, 401);
      expect(more).to.be.empty;
    });

    it('responds to good requests before one with an unknown method, which closes the connection', async () => {
      const good = `${get(host).replace('Connection: close\r\n', '')}\r\n`;
      const responses = await exchange(api(), `${good}${good}${get(host, '/products', 'FETCH')}\r\n`);
      expect(responses.map(({ status }) => status)).to.deep.equal([200, 200, 501]);
    });

    it('accepts rare but valid HTTP', async () => {
      const rare: [what: string, bytes: string][] = [
        ['HTTP/1.0 without a Host', `GET /products/1 HTTP/1.0\r\nAuthorization: Bearer ${api().key}\r\n\r\n`],
        [
          'HTTP/1.0 with a Host',
          `GET /products/1 HTTP/1.0\r\n${host}Authorization: Bearer ${api().key}\r\n\r\n`,
        ],
        ['an absolute target', `${get(host, 'http://medref.example/products/1')}\r\n`],
        ['an empty line first', `\r\n${get(host)}\r\n`],
        ['a Host without a port after its colon', `${get('Host: a:\r\n')}\r\n`],
        ['white space around a value', `${get('Host:   medref.example  \r\n')}\r\n`],
        ['a path of dots', `${get(host, '/x/../products/./1')}\r\n`],
      ];
      for (const [what, bytes] of rare) {
        const [response, ...more] = await exchange(api(), bytes);
        expect([response?.status, more.length], what).to.deep.equal([200, 0]);
      }
    });

    it('links to its own address if HTTP/1.0 names no Host', async () => {
      const [response] = await exchange(
        api(),
        `GET /products?per-page=1 HTTP/1.0\r\nAuthorization: Bearer ${api().key}\r\n\r\n`,
      );
      expect(response?.body.toString()).to.include(
        `"self":{"href":"${api().origin}/products?page=1&per-page=1"}`,
      );
    });

    it('survives clients that reset the connection at any point', async () => {
      for (const bytes of [
        'garbage\r\n\r\n',
        `CONNECT a:443 HTTP/1.1\r\nHost: a\r\n\r\n${'x'.repeat(50_000)}`,
        `${get(host, '/products')}\r\n`.repeat(20),
        `${get(`${host}Expect: x\r\n`)}\r\n`,
        post('Content-Length: 1000000\r\n', 'x'),
        get(host),
        'GET /pro',
        '',
      ]) {
        for (const delay of [0, 0, 2, 20]) {
          await new Promise<void>((resolve) => {
            const socket = connect(api().port, '127.0.0.1', () =>
              socket.write(bytes, () => setTimeout(() => socket.resetAndDestroy(), delay)),
            );
            socket.on('close', () => resolve());
            socket.on('error', () => resolve());
          });
        }
      }
      await sleep(100);
      expect((await send(api(), '/products/1')).status).to.equal(200);
    });

    it('lets a client that still sends a body read the response, without a reset', async () => {
      const chunked = post('Transfer-Encoding: chunked\r\n', '');
      for (const bytes of [
        post('Content-Length: 10000000\r\n', 'x'.repeat(5_000_000)),
        `${chunked}3;${'x'.repeat(100_000)}`,
        `${chunked}${'1\r\nx\r\n'.repeat(60_000)}ZZ`,
      ]) {
        for (let time = 1; time <= 5; time += 1) {
          const responses = await exchange(api(), bytes);
          expect(responses.map(({ status }) => status)).to.deep.equal([405]);
        }
      }
    });

    it('closes a connection that the client leaves open after its last response', async () => {
      for (const bytes of [
        'garbage\r\n\r\n',
        'CONNECT a:443 HTTP/1.1\r\nHost: a\r\n\r\n',
        post('Content-Length: 1000000\r\n', 'x'),
      ]) {
        const socket = connect({ port: api().port, host: '127.0.0.1', allowHalfOpen: true });
        const closed = new Promise((resolve) => socket.on('error', resolve).on('close', resolve));
        socket.resume().write(bytes);
        await new Promise((resolve) => socket.once('end', resolve));
        await sleep(1_300);
        const writing = setInterval(() => socket.write('x'), 20); // A write reveals a connection that the server has closed.
        const open = await Promise.race([closed.then(() => false), sleep(500).then(() => true)]);
        clearInterval(writing);
        socket.destroy();
        expect(open, 'the connection is still open').to.equal(false);
      }
    });
  });
});

function exchangeText(port: number, bytes: string): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    const chunks: Buffer[] = [];
    const socket = connect(port, '127.0.0.1', () => socket.write(bytes));
    socket.on('data', (chunk) => chunks.push(chunk));
    socket.on('end', () => resolve(Buffer.concat(chunks)));
    socket.on('error', reject);
  });
}
