import { gzipSync } from 'node:zlib';
import { expect } from 'chai';
import {
  createClient,
  digestOf,
  type MedrefClient,
  MedrefError,
  type MirrorOptions,
  type MirrorStep,
  type Product,
} from '../../client/client.ts';
import { quickTiming } from '../support/client-timing.ts';
import { product, products } from '../support/records.ts';
import { type Responder, type UpstreamServer, upstreamServers } from '../support/upstream-server.ts';

/** A small service: its data, and responses that a test sends in place of its own. */
interface SmallService {
  version: number;
  records: readonly Product[];
  /** The changes since each version. For other versions it responds with 410. */
  readonly changes: Map<number, unknown[]>;
  /** Returns true if it has sent the response itself. */
  spoil: (...asked: Parameters<Responder>) => boolean;
}

const json = 'application/json';

function answering(service: SmallService): Responder {
  return (response, request, nth) => {
    if (service.spoil(response, request, nth)) return;
    const url = new URL(request.url ?? '', 'http://localhost');
    const { list, set } = digestOf(service.records);
    const fields = { 'medref-version': service.version, 'medref-digest': `list=:${list}:, set=:${set}:` };
    if (!url.pathname.endsWith('/changes')) {
      const lines = service.records.map((it) => `${JSON.stringify(it)}\n`).join('');
      response.writeHead(200, { ...fields, 'content-encoding': 'gzip' }).end(gzipSync(lines));
      return;
    }
    const data = service.changes.get(Number(url.searchParams.get('since')));
    if (!data) return refuse(response, 410, 'Gone', 'It is not kept.');
    const body = { data, _links: {}, _meta: { totalCount: data.length }, success: true };
    response.writeHead(200, { ...fields, 'content-type': json }).end(JSON.stringify(body));
  };
}

function refuse(response: Parameters<Responder>[0], status: number, name: string, message: string): void {
  response.writeHead(status).end(JSON.stringify({ success: false, data: { name, message, status } }));
}

describe('a mirror', () => {
  const startServer = upstreamServers();
  let service: SmallService;
  let server: UpstreamServer;
  let client: MedrefClient;
  let troubles: MedrefError[];

  beforeEach(async () => {
    service = { version: 10, records: products(3), changes: new Map([[10, []]]), spoil: () => false };
    server = await startServer(answering(service));
    client = createClient({ baseUrl: server.origin, key: 'key' }, quickTiming);
    troubles = [];
  });

  const mirrorOf = (options: MirrorOptions = {}) =>
    client.products.mirror({ onError: (error) => troubles.push(error), ...options });
  const asked = () => server.requests.map(({ url }) => url);
  /** Returns the next step of a mirror. */
  async function next(mirror: AsyncGenerator<MirrorStep<Product>, void>): Promise<MirrorStep<Product>> {
    const { value, done } = await mirror.next();
    if (done || !value) throw new Error('The mirror has ended.');
    return value;
  }
  const publish = (records: readonly Product[], changes: unknown[]) => {
    for (const since of service.changes.keys()) service.changes.set(since, changes);
    service.version += 1;
    service.records = records;
    service.changes.set(service.version, []);
  };
  const changedOf = (record: Product) => ({ id: record.product.id, change: 'changed', record });
  const altered = product(2, { published: false });

  it('yields the whole list, then each change, with versions and digests', async () => {
    const mirror = mirrorOf();
    expect(await next(mirror)).to.deep.equal({
      ...{ kind: 'snapshot', version: 10, digest: digestOf(products(3)), records: products(3) },
    });
    const records = [product(1), altered, product(3)];
    publish(records, [changedOf(altered)]);
    expect(await next(mirror)).to.deep.equal({
      ...{ kind: 'changes', version: 11, digest: digestOf(records), changes: [changedOf(altered)] },
    });
    await mirror.return();
    expect(troubles).to.deep.equal([]);
  });

  it('continues from a version', async () => {
    publish([product(1), altered, product(3)], [changedOf(altered)]);
    expect(await next(mirrorOf({ since: 10 }))).to.include({ kind: 'changes', version: 11 });
    expect(asked()).to.deep.equal(['/products/changes?since=10&wait=30&page=1&per-page=200']);
  });

  it('reports a version without changes, so that its number is known', async () => {
    const mirror = mirrorOf();
    await next(mirror);
    publish(service.records, []);
    expect(await next(mirror)).to.deep.include({ kind: 'changes', version: 11, changes: [] });
  });

  it('uses long polls, and pauses if the service responds at once', async () => {
    client = createClient({ baseUrl: server.origin, key: 'key' }, { ...quickTiming, secondMs: 40 });
    const mirror = mirrorOf();
    await next(mirror);
    const startedAt = Date.now();
    service.spoil = (_response, _request, nth) => {
      if (nth === 6) publish(service.records, []);
      return false;
    };
    await next(mirror);
    // Four responses without changes, with a shortened second after each.
    expect(Date.now() - startedAt).to.be.at.least(4 * 36);
    expect(asked().filter((it) => it?.includes('wait=30'))).to.have.length(5);
  });

  it('polls in intervals if the service does not know "wait"', async () => {
    service.spoil = (response, { url = '' }, nth) => {
      if (nth === 5) publish(service.records, []);
      if (!url.includes('wait=')) return false;
      refuse(response, 400, 'Bad Request', 'There is no parameter "wait".');
      return true;
    };
    const mirror = mirrorOf({ every: 10 });
    await next(mirror);
    const startedAt = Date.now();
    await next(mirror);
    // Two responses without changes.
    expect(Date.now() - startedAt).to.be.at.least(2 * 45);
    expect(asked().filter((it) => it?.includes('wait='))).to.have.length(1);
    expect(asked()).to.have.length(5);
  });

  it('throws other refusals', async () => {
    service.spoil = (response) => {
      refuse(response, 400, 'Bad Request', 'It is not a version.');
      return true;
    };
    const error = await mirrorOf({ since: -1 })
      .next()
      .catch((thrown: unknown) => thrown);
    expect(error).to.include({ status: 400, message: 'It is not a version.' });
    expect(asked()).to.have.length(2);
  });

  it('yields the whole list again if its version is not kept', async () => {
    expect(await next(mirrorOf({ since: 7 }))).to.include({ kind: 'snapshot', version: 10 });
    expect(troubles.map(({ status }) => status)).to.deep.equal([410]);
  });

  it('asks again if a process may not know the version of another process yet', async () => {
    const timing = { ...quickTiming, secondMs: 100 };
    client = createClient({ baseUrl: server.origin, key: 'key' }, timing);
    const mirror = mirrorOf();
    await next(mirror);
    service.spoil = (response, _request, nth) => {
      if (nth === 2) refuse(response, 410, 'Gone', 'It was never published.');
      else publish(service.records, []);
      return nth === 2;
    };
    expect(await next(mirror)).to.include({ kind: 'changes', version: 11 });
    expect(troubles).to.deep.equal([]);
    service.spoil = () => false;
    service.changes.clear();
    service.version = 5;
    expect(await next(mirror)).to.include({ kind: 'snapshot', version: 5 });
    expect(asked().filter((it) => it?.includes('since=11'))).to.have.length(2);
  });

  it('reads the whole list again if changes do not lead to the version', async () => {
    const mirror = mirrorOf();
    await next(mirror);
    publish([product(1), altered, product(3)], []);
    expect(await next(mirror)).to.deep.include({ kind: 'snapshot', version: 11, records: service.records });
    expect(troubles.map(({ reason }) => reason)).to.deep.equal(['DigestMismatch']);
    publish(products(2), [{ id: 3, change: 'removed' }, changedOf(product(2))]);
    expect(await next(mirror)).to.include({ kind: 'changes', version: 12 });
    publish([product(1), product(2), product(3)], [{ id: 3, change: 'added', record: product(3) }]);
    expect(await next(mirror)).to.include({ kind: 'changes', version: 13 });
  });

  for (const since of [undefined, 10])
    it(`reads the whole list if the same version has other records than before${since ? ', also of a copy from before' : ''}`, async () => {
      const mirror = mirrorOf({ since });
      if (since === undefined) await next(mirror);
      // From the fourth request on, the address leads to another installation.
      service.spoil = (_response, _request, nth) => {
        if (nth === 4) service.records = [product(1), altered, product(3)];
        return false;
      };
      expect(await next(mirror)).to.deep.include({ kind: 'snapshot', version: 10, records: service.records });
      expect(troubles.map(({ reason, message }) => [reason, message])).to.deep.equal([
        [
          'DigestMismatch',
          'Version 10 of products has a different digest than before: another installation responded, or its data was replaced.',
        ],
      ]);
      expect(server.requests.length).to.be.within(5, 6);
      publish(products(2), [{ id: 3, change: 'removed' }, changedOf(product(2))]);
      expect(await next(mirror)).to.include({ kind: 'changes', version: 11 });
    });

  it('continues if nothing changed and the service sends no digest', async () => {
    const mirror = mirrorOf({ since: 10 });
    service.spoil = (response, _request, nth) => {
      if (nth === 4) publish(service.records, []);
      if (nth >= 4) return false;
      const body = { data: [], _links: {}, _meta: { totalCount: 0 }, success: true };
      response.writeHead(200, { 'medref-version': 10 }).end(JSON.stringify(body));
      return true;
    };
    expect(await next(mirror)).to.include({ kind: 'changes', version: 11 });
    expect(troubles).to.deep.equal([]);
  });

  it('trusts changes of a version without a set digest', async () => {
    const mirror = mirrorOf();
    await next(mirror);
    publish(service.records, [changedOf(altered)]);
    service.spoil = (response) => {
      const body = { data: [changedOf(altered)], _links: {}, _meta: { totalCount: 1 }, success: true };
      const fields = { 'medref-version': service.version, 'medref-digest': 'list=:YQ==:' };
      response.writeHead(200, fields).end(JSON.stringify(body));
      return true;
    };
    expect(await next(mirror)).to.deep.include({ kind: 'changes', digest: { list: 'YQ==', set: null } });
  });

  it('reads a damaged list three times, yields none of it, and throws', async () => {
    service.spoil = (response) => {
      const fields = { 'medref-version': 10, 'medref-digest': 'list=:YQ==:' };
      response.writeHead(200, fields).end(`${JSON.stringify(product(1))}\n`);
      return true;
    };
    const error = await mirrorOf()
      .next()
      .catch((thrown: unknown) => thrown);
    expect(error).to.be.instanceOf(MedrefError).and.include({ reason: 'DigestMismatch' });
    expect(asked()).to.have.length(3);
    expect(troubles).to.have.length(2);
  });

  it('restarts a list if its version expires during the read', async () => {
    service.spoil = (response, { url = '' }, nth) => {
      if (nth === 1) {
        const fields = { 'medref-version': 9, 'medref-digest': 'list=:YQ==:' };
        response.writeHead(200, fields).write('{"product":', () => response.socket?.destroy());
      } else if (url.includes('version=9')) refuse(response, 410, 'Gone', 'It is not kept.');
      else return false;
      return true;
    };
    expect(await next(mirrorOf())).to.deep.include({ kind: 'snapshot', version: 10, records: products(3) });
    expect(asked()).to.deep.equal(['/products', '/products?version=9', '/products']);
  });

  it('gives up before its first data if the service is unavailable, and never afterwards', async () => {
    let away = 0;
    service.spoil = (response) => {
      // One response asks for a longer wait than a single request would accept.
      if (away > 0) response.writeHead(503, away === 6 ? { 'retry-after': '61' } : {}).end();
      away -= 1;
      return away >= 0;
    };
    away = 5;
    const error = await mirrorOf()
      .next()
      .catch((thrown: unknown) => thrown);
    expect(error).to.include({ status: 503 });
    away = 0;
    const mirror = mirrorOf();
    await next(mirror);
    away = 8;
    troubles.length = 0;
    publish(service.records, []);
    expect(await next(mirror)).to.include({ version: 11 });
    expect(troubles.map(({ status }) => status)).to.deep.equal(Array(8).fill(503));
  });

  it('ends silently with a signal: during a request, a wait, and between steps', async () => {
    for (const spoil of [
      () => true,
      (response: Parameters<Responder>[0]) => response.writeHead(503).end() === response,
    ]) {
      const ending = new AbortController();
      const mirror = mirrorOf({ signal: ending.signal });
      service.spoil = () => false;
      await next(mirror);
      service.spoil = spoil;
      setTimeout(() => ending.abort(), 30);
      expect(await mirror.next()).to.deep.equal({ value: undefined, done: true });
    }
    const ending = new AbortController();
    service.spoil = () => false;
    const mirror = mirrorOf({ signal: ending.signal });
    await next(mirror);
    ending.abort();
    expect((await mirror.next()).done).to.equal(true);
  });

  it('ends at once if aborted by its error callback', async () => {
    const ending = new AbortController();
    const startedAt = Date.now();
    service.spoil = (response) => response.writeHead(503, { 'retry-after': '60' }).end() === response;
    const timing = { ...quickTiming, secondMs: 1_000 };
    client = createClient({ baseUrl: server.origin, key: 'key' }, timing);
    const mirror = mirrorOf({ signal: ending.signal, onError: () => ending.abort() });
    expect((await mirror.next()).done).to.equal(true);
    expect(Date.now() - startedAt).to.be.below(5_000);
  });

  it('ends with the signal of its client', async () => {
    const ending = new AbortController();
    const { signal } = ending;
    const { products: collection } = createClient(
      { baseUrl: server.origin, key: 'key', signal },
      quickTiming,
    );
    const mirror = collection.mirror();
    await next(mirror);
    ending.abort();
    expect((await mirror.next()).done).to.equal(true);
  });
});
