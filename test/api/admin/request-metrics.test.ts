// Tests how requests are counted, by which labels, and the maximum number of series.

import { expect } from 'chai';
import { Registry } from 'prom-client';
import { requestMetrics } from '../../../api/admin/metrics.ts';
import type { CompletedRequest } from '../../../api/http.ts';

const answered: CompletedRequest = {
  ...{ requestId: 'r', method: 'GET', target: '/products?page=2', route: '/products', status: 200 },
  ...{
    beganMs: 4,
    ms: 900,
    waitedMs: null,
    bytes: 700,
    isWhole: true,
    client: 'Pharmacy 7',
    address: '127.0.0.1',
  },
};

async function counted(...requests: CompletedRequest[]) {
  const registry = new Registry();
  const count = requestMetrics(registry);
  for (const request of requests) count(request);
  const lines = (await registry.metrics()).split('\n').filter((line) => /^medref/.test(line));
  return { lines, of: (name: string) => lines.filter((line) => line.startsWith(`medref_http_${name}`)) };
}

describe('the metrics of requests', () => {
  it('count by route and status, by client and status, with bytes and truncated responses', async () => {
    const { of } = await counted(
      answered,
      answered,
      { ...answered, status: 304, bytes: 0 },
      { ...answered, route: '/products/{id}', status: 401, client: null },
      { ...answered, route: null, status: null, beganMs: null, client: null, isWhole: false, bytes: 0 },
    );
    expect(of('requests_total')).to.deep.equal([
      'medref_http_requests_total{route="/products",status="200"} 2',
      'medref_http_requests_total{route="/products",status="304"} 1',
      'medref_http_requests_total{route="/products/{id}",status="401"} 1',
      'medref_http_requests_total{route="none",status="none"} 1',
    ]);
    expect(of('client_requests_total')).to.deep.equal([
      'medref_http_client_requests_total{client="Pharmacy 7",status="200"} 2',
      'medref_http_client_requests_total{client="Pharmacy 7",status="304"} 1',
      'medref_http_client_requests_total{client="none",status="401"} 1',
      'medref_http_client_requests_total{client="none",status="none"} 1',
    ]);
    expect(of('response_bytes_total')).to.deep.equal([
      'medref_http_response_bytes_total{route="/products"} 1400',
      'medref_http_response_bytes_total{route="/products/{id}"} 700',
    ]);
    expect(of('truncated_responses_total')).to.deep.equal(['medref_http_truncated_responses_total 1']);
  });

  it('measure the time to the start of a response in seconds, only if there was one', async () => {
    const { of } = await counted(answered, { ...answered, beganMs: 600 }, { ...answered, beganMs: null });
    expect(of('request_duration_seconds_sum')).to.deep.equal([
      'medref_http_request_duration_seconds_sum{route="/products"} 0.604',
    ]);
    expect(of('request_duration_seconds_bucket').slice(1, 3)).to.deep.equal([
      'medref_http_request_duration_seconds_bucket{le="0.0025",route="/products"} 0',
      'medref_http_request_duration_seconds_bucket{le="0.005",route="/products"} 1',
    ]);
  });

  it('separate the first hundred clients, and combine all others', async () => {
    const clients = Array.from({ length: 150 }, (_, n) => ({ ...answered, client: `client ${n}` }));
    const { of } = await counted(...clients, ...clients);
    const lines = of('client_requests_total');
    expect(lines).to.have.length(101);
    expect(lines).to.include('medref_http_client_requests_total{client="client 99",status="200"} 2');
    expect(lines).to.include('medref_http_client_requests_total{client="other",status="200"} 100');
  });

  it('escape client names with special characters', async () => {
    const { of } = await counted({ ...answered, client: 'a "b"\\\n{c}' });
    expect(of('client_requests_total')).to.deep.equal([
      'medref_http_client_requests_total{client="a \\"b\\"\\\\\\n{c}",status="200"} 1',
    ]);
  });
});
