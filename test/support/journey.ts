// Tests of the complete pipeline, from upstream to a mirror, on a Redis of one server or several.

import { expect } from 'chai';
import { companies } from '../../shared/collections/companies.ts';
import { connectForWriting, type Redis } from '../../shared/redis/connections.ts';
import { collectionKeys } from '../../shared/store/keys.ts';
import { type CommandResult, type RunningCommand, medref as run, startMedref } from './medref.ts';
import { upstreamServers } from './upstream-server.ts';
import { listUrl, readList, whichLists } from './whole-lists.ts';

interface Report {
  collection: string;
  outcome: string;
  version: number | null;
  read: number;
  written: number;
  rejected: number;
  reason: string | null;
}

interface Page {
  data: unknown[];
  _links: { next?: { href: string } };
  _meta: { totalCount: number };
}

/** The servers on which a journey runs. */
export interface JourneyPlace {
  /** The value for REDIS_URL. */
  readonly url: string;
  stop(): Promise<void>;
}

/** Declares the tests, in a suite or at the top of a test file. @param where the end of the title */
export function journey(start: () => Promise<JourneyPlace>, where = ''): void {
  describe(`the whole journey, with ${whichLists}${where}`, function () {
    this.timeout(120_000);
    const startUpstream = upstreamServers();
    let server: JourneyPlace;
    let redis: Redis;
    let api: RunningCommand;
    let address: string;
    let key: string;

    const medref = (args: string[], settings: Record<string, string> = {}): Promise<CommandResult> =>
      run(args, { REDIS_URL: server.url, ...settings });
    const reports = (result: CommandResult) => result.json<{ imports: Report[] }>().imports;
    const lists = {
      PRODUCTS_URL: listUrl('products').href,
      COMPANIES_URL: listUrl('companies').href,
    };
    const get = (path: string) =>
      fetch(new URL(path, address), { headers: { authorization: `Bearer ${key}` } });

    /** Reads every record of a collection page by page along `next`, and returns them as JSON text. */
    async function walk(path: string): Promise<string[]> {
      const records: string[] = [];
      for (let next: string | undefined = path; next; ) {
        const response = await get(next);
        expect(response.status).to.equal(200);
        const page = (await response.json()) as Page;
        records.push(...page.data.map((record) => JSON.stringify(record)));
        next = page._links.next?.href;
      }
      return records;
    }

    before(async () => {
      server = await start();
      redis = await connectForWriting(server.url);
      api = startMedref(['serve', '--json'], { REDIS_URL: server.url, API_PORT: '0' });
      [, address] = (await api.line(/"address":"([^"]+)"/)) as unknown as [string, string];
      ({ key } = (await medref(['keys', 'create', '--client', 'journey', '--json'])).json<{ key: string }>());
    });
    after(async () => {
      api.process.kill('SIGTERM');
      await api.ended;
      redis.disconnect();
      await server.stop();
    });

    it('imports all 28,395 products and 2,417 companies, and the same again is unchanged', async () => {
      const first = await medref(['import', '--json'], lists);
      expect(first.code).to.equal(0);
      expect(
        reports(first).map(({ outcome, written, rejected }) => [outcome, written, rejected]),
      ).to.deep.equal([
        ['published', 28_395, 0],
        ['published', 2_417, 0],
      ]);
      const live = reports(first).map(({ version }) => version);
      for (const version of live) expect(String(version)).to.match(/^20\d{12}$/);
      const again = await medref(['import', 'companies', '--json'], lists);
      expect(reports(again)[0]).to.deep.include({ outcome: 'unchanged', version: live[1] });
    });

    for (const [name, perPage] of [
      ['products', 200],
      ['companies', 199],
    ] as const) {
      it(`serves every record of the ${name} unchanged, in order, along next, ${perPage} per page`, async () => {
        const source = readList(name).map((record) => JSON.stringify(record));
        expect(await walk(`/${name}?per-page=${perPage}`)).to.deep.equal(source);
      });
    }

    it('serves each of three hundred records by its id', async () => {
      const source = readList<{ product: { id: number } }>('products');
      for (let i = 0; i < source.length; i += Math.ceil(source.length / 300)) {
        const record = source[i];
        const response = await get(`/products/${record?.product.id}`);
        expect(await response.text()).to.equal(`{"data":${JSON.stringify(record)},"success":true}`);
      }
    });

    it('mirrors the companies of another instance byte for byte', async () => {
      const settings = {
        KEY_PREFIX: 'mirror',
        COMPANIES_URL: `${address}/companies?per-page=50`,
        UPSTREAM_TOKEN: key,
      };
      const result = await medref(['import', '--json'], settings);
      expect(reports(result).map(({ outcome, read, reason }) => [outcome, read, reason])).to.deep.equal([
        ['published', 2_417, null],
      ]);
      const documents = await Promise.all(
        ['medref', 'mirror'].map((prefix) => redis.get(collectionKeys(prefix, companies).live)),
      );
      const [original, mirrored] = documents.map((text) => JSON.parse(text ?? '') as { checksum: string });
      expect(mirrored?.checksum).to.equal(original?.checksum);
    });

    it('imports the invalid records of each kind: each is written, or rejected with position, path and reason', async () => {
      const dirty = readList<{ kind: string; record: DirtyRecord }>('dirty');
      for (const [kind, name] of [
        ['product', 'products'],
        ['company', 'companies'],
      ] as const) {
        const records = dirty.filter((it) => it.kind === kind).map((it) => it.record);
        const expected = expectedRejects(records);
        expect(expected, 'the list has something to reject').not.to.have.length(0);
        const upstream = await startUpstream((response) => response.end(JSON.stringify({ data: records })));
        const settings = { KEY_PREFIX: 'dirty', [`${name.toUpperCase()}_URL`]: upstream.url().href };
        const result = await medref(['import', '--json'], { ...settings, MAX_REJECT_PERCENT: '100' });
        expect(reports(result)[0]).to.deep.include({
          outcome: 'published',
          read: records.length,
          written: records.length - expected.length,
          rejected: expected.length,
        });
        const listed = await medref(['rejects', name, '--json'], { KEY_PREFIX: 'dirty' });
        expect(listed.json()).to.deep.equal({ total: expected.length, rejects: expected.slice(0, 1_000) });
      }
    });
  });
}

interface DirtyRecord {
  id?: number;
  product?: { id: number };
  barcodes?: { barcode: string }[];
}

/** Finds the records to reject in a different way than the importer: invalid barcodes, and repeated ids. */
function expectedRejects(records: readonly DirtyRecord[]): unknown[] {
  const first = new Map<number | undefined, number>();
  return records.flatMap((record, i) => {
    const raw = JSON.stringify(record);
    const bad = record.barcodes?.findIndex(({ barcode }) => !/^\d{12,13}$/.test(barcode)) ?? -1;
    if (bad !== -1) {
      const path = `$.barcodes[${bad}].barcode`;
      return [{ position: i + 1, path, reason: 'must be a string of 12 or 13 digits', raw }];
    }
    const id = record.product?.id ?? record.id;
    const before = first.get(id);
    if (before === undefined) {
      first.set(id, i + 1);
      return [];
    }
    const path = record.product ? '$.product.id' : '$.id';
    return [{ position: i + 1, path, reason: `is a duplicate of the record at position ${before}`, raw }];
  });
}
