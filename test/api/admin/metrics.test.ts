// Tests the metrics on the admin listener of a serving process, over real HTTP.

import { setTimeout as sleep } from 'node:timers/promises';
import { expect } from 'chai';
import { products as productCollection } from '../../../shared/collections/products.ts';
import { connectForWriting } from '../../../shared/redis/connections.ts';
import { importRecords } from '../../support/importing.ts';
import { productKeys } from '../../support/keys.ts';
import { medref, startMedref } from '../../support/medref.ts';
import { products } from '../../support/records.ts';
import { useRedis } from '../../support/redis-server.ts';

describe('the metrics of an API process', function () {
  this.timeout(30_000);
  const server = useRedis();

  it('show the live versions unless Redis is unavailable, and count reads that found damage', async () => {
    const settings = { REDIS_URL: server().url };
    const imported = await importRecords(products(120), productCollection, { redisUrl: server().url });
    const version = imported.version as number;
    const { key } = (await medref(['keys', 'create', '--client', 'x', '--json'], settings)).json<{
      key: string;
    }>();
    const serving = startMedref(['serve', '--json'], { ...settings, API_PORT: '0', LOG_LEVEL: 'info' });
    const adminAddress = adminOf(serving.process.stderr as NodeJS.ReadableStream);
    const [, address = ''] = await serving.line(/"address":"([^"]+)"/);
    const admin = await adminAddress;

    const metric = async (name: string) => {
      const text = await (await fetch(`${admin}/metrics`)).text();
      return text.split('\n').filter((line) => line.startsWith(name) && !line.includes('timestamp'));
    };
    // The first scrape has all of them.
    expect((await metric('medref_live_')).sort()).to.deep.equal([
      'medref_live_records{collection="drugs"} 120',
      'medref_live_records{collection="products"} 120',
      `medref_live_version{collection="drugs"} ${version}`,
      `medref_live_version{collection="products"} ${version}`,
    ]);
    expect(await metric('medref_damaged_reads_total')).to.deep.equal(['medref_damaged_reads_total 0']);

    const redis = await connectForWriting(server().url);
    const { blocks, order } = productKeys.content(version);
    await redis.del(blocks, order);
    redis.disconnect();
    const headers = { authorization: `Bearer ${key}` };
    expect((await fetch(`${address}/products`, { headers })).status).to.equal(503);
    expect(await metric('medref_damaged_reads_total')).to.deep.equal(['medref_damaged_reads_total 1']);

    const waiting = fetch(`${address}/products/changes?since=${version}&wait=60`, { headers });
    while ((await metric('medref_waiting_requests'))[0] !== 'medref_waiting_requests 1') await sleep(20);

    await server().kill();
    expect(await metric('medref_live_'), 'metrics of versions while Redis is unavailable').to.deep.equal([]);
    expect(await metric('medref_damaged_reads_total')).to.deep.equal(['medref_damaged_reads_total 1']);

    serving.process.kill('SIGTERM');
    expect(
      (await waiting).status,
      'a request that waited until the process stopped, while Redis was unavailable',
    ).to.equal(503);
    const { code, stderr } = await serving.ended;
    expect(code).to.equal(0);
    expect(stderr).to.include(`medref:{products}:${version}:order`);
  });

  it('count requests, service errors by cause, and requests without a valid key; the log has each cause once', async () => {
    await server().restart();
    const settings = { REDIS_URL: server().url };
    const { key } = (await medref(['keys', 'create', '--client', 'x', '--json'], settings)).json<{
      key: string;
    }>();
    const serving = startMedref(['serve', '--json'], { ...settings, API_PORT: '0', LOG_LEVEL: 'info' });
    const adminAddress = adminOf(serving.process.stderr as NodeJS.ReadableStream);
    const [, address = ''] = await serving.line(/"address":"([^"]+)"/);
    const admin = await adminAddress;
    const ask = async (authorization: string) =>
      (await fetch(`${address}/companies`, { headers: { authorization } })).status;
    const counted = async () => {
      const text = await (await fetch(`${admin}/metrics`)).text();
      return text.split('\n').filter((line) => /^medref_un.* [^0]/.test(line));
    };
    expect(await counted(), 'at the start').to.deep.equal([]);
    for (let n = 0; n < 3; n += 1) expect(await ask(`Bearer ${key}`)).to.equal(503);
    for (let n = 0; n < 2; n += 1) expect(await ask('Bearer x')).to.equal(401);
    expect(await counted()).to.deep.equal([
      'medref_unavailable_total{cause="nothing-published"} 3',
      'medref_unauthorized_total 2',
    ]);
    const ofRequests = await (await fetch(`${admin}/metrics`)).text();
    for (const line of [
      'medref_http_requests_total{route="/companies",status="503"} 3',
      'medref_http_client_requests_total{client="x",status="503"} 3',
      'medref_http_client_requests_total{client="none",status="401"} 2',
    ])
      expect(ofRequests.split('\n')).to.include(line);
    serving.process.kill('SIGTERM');
    const { stderr } = await serving.ended;
    const answered = stderr.split('\n').filter((line) => line.includes('"msg":"Request completed."'));
    expect(answered.map((line) => JSON.parse(line).status)).to.deep.equal([503, 503, 503, 401, 401]);
    const lines = stderr.split('\n').filter((line) => line.includes('"cause":"nothing-published"'));
    expect(lines).to.have.length(1);
    expect(lines[0]).to.include('No version of companies has been published yet.');
  });
});

/** Returns the address of the admin listener from the log of a process. */
function adminOf(log: NodeJS.ReadableStream): Promise<string> {
  let text = '';
  return new Promise((resolve, reject) => {
    log.on('data', (chunk) => {
      text += chunk;
      const [, address] = /"address":"([^"]+)","msg":"The admin listener is ready\./.exec(text) ?? [];
      if (address) resolve(address);
    });
    log.on('end', () => reject(new Error(`The log names no admin listener: ${text}`)));
  });
}
