// The story of a suspicious list and of its readers, told through processes: the importer, the API, operators and clients.

import { expect } from 'chai';
import { createClient } from '../../client/client.ts';
import { createKey, medrefProcess, type RunningCommand, startMedref } from '../support/medref.ts';
import { product, products } from '../support/records.ts';
import { useRedis } from '../support/redis-server.ts';
import { upstreamServers } from '../support/upstream-server.ts';

describe('the story of a list that shrinks', function () {
  this.timeout(90_000);
  const server = useRedis();
  const startUpstream = upstreamServers();
  let list: readonly unknown[] = [];
  let settings: Record<string, string>;
  let api: RunningCommand;
  let address: string;
  before(async () => {
    settings = { REDIS_URL: server().url, API_PORT: '0', ADMIN_PORT: '0', LOG_LEVEL: 'silent' };
    api = startMedref(['serve', '--json'], settings);
    [, address = ''] = await api.line(/"address":"([^"]+)"/);
  });
  after(async () => {
    api.process.kill('SIGTERM');
    await api.ended;
  });

  const medref = (...args: string[]) => medrefProcess(args, settings);
  /** Imports a list. @returns the exit code, the outcome and the version */
  const importList = async (records: readonly unknown[], changes: Record<string, string> = {}) => {
    list = records;
    const { code, stdout } = await medrefProcess(['import', 'products', '--json'], {
      ...settings,
      ...changes,
    });
    const { imports } = JSON.parse(stdout) as { imports: { outcome: string; version: number | null }[] };
    return { code, outcome: imports[0]?.outcome, version: imports[0]?.version as number };
  };
  const served = async (key: string) => {
    const response = await fetch(`${address}/products?per-page=1`, {
      headers: { authorization: `Bearer ${key}` },
    });
    const { _meta } = (await response.json()) as { _meta: { totalCount: number } };
    return [Number(response.headers.get('medref-version')), _meta.totalCount];
  };
  const awaitServed = async (key: string, version: number) => {
    while ((await served(key))[0] !== version);
  };

  it('is refused, inspected and published; then approved; then too late; and each client is known', async () => {
    const upstream = await startUpstream((response) => response.end(JSON.stringify(list)));
    settings = { ...settings, PRODUCTS_URL: upstream.url().href };
    const [mirroring, plain, stopped] = await Promise.all(
      ['Mirror', 'Plain curl', 'Stopped'].map((client) => createKey(server().url, '--client', client)),
    );
    const whole = (key = '') =>
      fetch(`${address}/products`, {
        headers: { authorization: `Bearer ${key}`, accept: 'application/x-ndjson' },
      }).then((response) => response.text());

    const first = await importList(products(20));
    expect(first).to.include({ code: 0, outcome: 'published' });
    await awaitServed(mirroring as string, first.version);
    await whole(stopped);

    // Upstream loses half of its records: the import is refused, and an operator publishes exactly what was inspected.
    expect(await importList(products(10))).to.include({ code: 3, outcome: 'refused' });
    expect(await served(plain as string)).to.deep.equal([first.version, 20]);
    const diff = await medref('diff', 'products', '--to', 'candidate');
    expect(diff.stdout).to.include('0 added, 0 changed, 10 removed');
    const candidate = Number(/to version (\d+)/.exec(diff.stdout)?.[1]);
    list = [];
    const published = await medref(
      ...['publish', 'products', '--candidate', String(candidate), '--reason', 'the ministry confirmed it'],
    );
    expect(published.code, published.stderr).to.equal(0);
    await awaitServed(plain as string, candidate);
    expect(await served(plain as string)).to.deep.equal([candidate, 10]);
    const versions = await medref('versions', 'products');
    expect(versions.stdout).to.match(/by \S+@\S+: "the ministry confirmed it"/);

    // Every import waits for an approval.
    const manual = { PUBLISH: 'manual' };
    const waiting = await importList(products(11), manual);
    expect(waiting).to.include({ code: 0, outcome: 'candidate' });
    expect(await served(plain as string)).to.deep.equal([candidate, 10]);
    expect((await medref('publish', 'products')).code).to.equal(0);
    await awaitServed(plain as string, waiting.version);

    // The live version changes before the approval.
    const late = await importList(products(12), manual);
    const other = await importList([...products(12), product(99)]);
    expect(other).to.include({ outcome: 'published' });
    const refused = await medref('publish', 'products');
    expect(refused.code).to.equal(1);
    expect(refused.stderr).to.include(
      `the candidate ${late.version} was compared with version ${waiting.version}`,
    );
    await awaitServed(plain as string, other.version);
    expect(await served(plain as string)).to.deep.equal([other.version, 13]);

    // One client mirrors with the client library, one by plain NDJSON, and one has stopped three versions ago.
    await whole(plain);
    const ending = new AbortController();
    const mirror = createClient({ baseUrl: address, key: mirroring as string }).products.mirror({
      signal: ending.signal,
    });
    expect((await mirror.next()).value).to.include({ kind: 'snapshot', version: other.version });
    const next = mirror.next();
    const table = async () => (await medref('keys', 'list')).stdout;
    while (!(await table()).includes(`${other.version}, verified`));
    ending.abort();
    await next;
    const rows = (await table()).trimEnd().split('\n').slice(1);
    const rowAfter = (client: string) => rows[rows.findIndex((row) => row.endsWith(client)) + 1]?.trim();
    expect([rowAfter('Mirror'), rowAfter('Plain curl'), rowAfter('Stopped')]).to.deep.equal([
      `products ${other.version}, verified, live`,
      `products ${other.version}, served, live`,
      `products ${first.version}, served, 3 versions behind`,
    ]);
  });
});
