// Tests the access log: which requests get a line, what a line contains, what it must not contain, and the number of lines.

import { setTimeout as sleep } from 'node:timers/promises';
import { expect } from 'chai';
import { pino } from 'pino';
import { AccessLog, type AccessLogLevel } from '../../../api/admin/logs.ts';
import type { CompletedRequest } from '../../../api/http.ts';

const answered: CompletedRequest = {
  ...{ requestId: 'r', method: 'GET', target: '/products?page=2', route: '/products', status: 200 },
  ...{
    beganMs: 1,
    ms: 1.26,
    waitedMs: null,
    bytes: 7,
    isWhole: true,
    client: 'Pharmacy 7',
    address: '127.0.0.1',
  },
};

function logged(level: AccessLogLevel, linesASecond?: number) {
  const lines: Record<string, unknown>[] = [];
  const logger = pino(
    { base: null, timestamp: false },
    { write: (line: string) => void lines.push(JSON.parse(line)) },
  );
  const log = new AccessLog(logger, level, linesASecond === undefined ? {} : { linesASecond });
  return { lines, log };
}

describe('the access log', () => {
  it('logs no requests, 4xx and 5xx, or all', () => {
    const statuses = [200, 304, 399, 400, 404, 500, 503, null];
    for (const [level, expected] of [
      ['off', []],
      ['errors', [400, 404, 500, 503]],
      ['all', statuses],
    ] as const) {
      const { lines, log } = logged(level);
      for (const status of statuses) log.write({ ...answered, status });
      log.endSecond();
      expect(
        lines.map(({ status }) => status),
        level,
      ).to.deep.equal(expected);
    }
  });

  it('logs the result of a request', () => {
    const { lines, log } = logged('all');
    log.write(answered);
    log.write({ ...answered, method: null, target: null, route: null, client: null });
    const line = {
      ...{ level: 30, requestId: 'r', method: 'GET', path: '/products?page=2', route: '/products' },
      ...{ status: 200, ms: 1.3, bytes: 7, isWhole: true, client: 'Pharmacy 7', address: '127.0.0.1' },
      msg: 'Request completed.',
    };
    expect(lines).to.deep.equal([line, { ...line, method: null, path: null, route: null, client: null }]);
  });

  it('never logs a key, percent-encoded or not, or the value of a secret parameter', () => {
    const key = `medref_${'aB3-_'.repeat(9)}`;
    const encoded = [...key].map((it) => `%${it.charCodeAt(0).toString(16)}`).join('');
    const { lines, log } = logged('all');
    const shown = (target: string) => {
      log.write({ ...answered, target, requestId: target });
      const { path, requestId } = lines.at(-1) as { path: string; requestId: string };
      expect(requestId).to.equal(path);
      return path;
    };
    expect(shown(`/products/${key}`)).to.equal('/products/***');
    expect(shown(`/products?name=${key}&page=2`)).to.equal('/products?name=***&page=2');
    expect(shown(`/x?name=${key.replace('_', '%5F')}`)).to.equal('/x?name=***');
    expect(shown(`/products?name=${encoded}`)).to.equal('***');
    expect(shown('/x?api_key=abc&page=2')).to.equal('/x?api_key=***&page=2');
    expect(shown('/x?page=2&Access-Token=abc#x')).to.equal('/x?page=2&Access-Token=***#x');
    expect(shown('/x?%6bey=abc')).to.equal('/x?%6bey=***');
    expect(shown('/products?name=asp%C4%B1rin&page=3')).to.equal('/products?name=asp%C4%B1rin&page=3');
    expect(shown(`/x?name=${'y'.repeat(5_000)}`)).to.have.length(1_001);
  });

  it("takes time linear in the length of a client's text", () => {
    const { log } = logged('all');
    const took = (target: string) => {
      const start = process.cpuUsage();
      for (let n = 0; n < 20; n += 1) log.write({ ...answered, target });
      return process.cpuUsage(start).user / 1_000 / 20;
    };
    for (const part of ['key', '?key', '&key=', '?a=', '%6', 'medref_', '%']) {
      expect(took(part.repeat(16_384 / part.length)), part).to.be.below(20);
    }
  });

  it('limits lines per second for 5xx, for 4xx and for others, and logs how many were left out', async () => {
    const { lines, log } = logged('all', 3);
    for (let n = 0; n < 10; n += 1)
      for (const status of [200, 304, 401, 404, 503]) log.write({ ...answered, status });
    expect(lines.map(({ status }) => status)).to.deep.equal([200, 304, 401, 404, 503, 200, 401, 503, 503]);
    await sleep(1_100);
    expect(lines.slice(9)).to.deep.equal([
      {
        level: 30,
        requests: 41,
        byStatus: { 304: 9, 404: 9, 200: 8, 401: 8, 503: 7 },
        msg: 'Too many requests in one second to log each.',
      },
    ]);
    log.write(answered);
    log.endSecond();
    expect(lines, 'in the next second').to.have.length(11);
  });

  it('logs at once how many were left out when the process ends, and nothing if none were', () => {
    const { lines, log } = logged('errors', 1);
    for (let n = 0; n < 3; n += 1) log.write({ ...answered, status: 500 });
    log.endSecond();
    log.endSecond();
    log.write({ ...answered, status: 500 });
    expect(lines.map(({ requests, byStatus }) => [requests, byStatus])).to.deep.equal([
      [undefined, undefined],
      [2, { 500: 2 }],
      [undefined, undefined],
    ]);
  });
});
