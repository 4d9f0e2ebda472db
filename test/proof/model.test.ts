// Compares the service with a small model of it: random imports, killed imports and rollbacks. After each of them, all reads and
// all keys in Redis are compared.

import { createHash } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { expect } from 'chai';
import fc from 'fast-check';
import type { ImportOutcome } from '../../importer/report.ts';
import { readCandidate } from '../../shared/candidates.ts';
import type { Drug } from '../../shared/collections/products.ts';
import { type Product, products as productCollection } from '../../shared/collections/products.ts';
import { connectForWriting, type Redis } from '../../shared/redis/connections.ts';
import { type ApiAnswer, startApi, type TestApi } from '../support/api.ts';
import { aheadOfClock, type ImportChanges, importFrom, importRecords } from '../support/importing.ts';
import { productKeys as keys } from '../support/keys.ts';
import { medref } from '../support/medref.ts';
import { product } from '../support/records.ts';
import { useRedis } from '../support/redis-server.ts';
import { sending, startUpstreamServer } from '../support/upstream-server.ts';
import { checkKeySpace } from './key-space.ts';
import { runAndKill } from './kill-matrix.ts';
import { isFull, note } from './proof.ts';

const keepVersions = 3;
const ids = [1, 2, 3, 9, 10, 11];

/** The records of a version, in order. */
type Content = readonly Product[];

interface PublishedVersion {
  readonly number: number;
  /** The number under which the content was first published. */
  readonly contentOf: number;
  readonly content: Content;
}

/** The expected state of the service, in a few variables. */
interface Model {
  /** All versions that were ever published, oldest first. */
  readonly published: PublishedVersion[];
  /** Checksums of contents that were rolled back. */
  readonly rolledBack: Set<string>;
  /** Whether a rollback has paused the schedule. */
  paused: boolean;
  /** Whether the last publication was a rollback. */
  lastWasRollback: boolean;
  /** The version that waits for an operator; it was compared with the version `comparedWith`. */
  candidate: (PublishedVersion & { readonly comparedWith: number }) | null;
}

/** The real service that the model is compared with. */
interface Real {
  readonly redis: Redis;
  readonly redisUrl: string;
  readonly redisPort: number;
  readonly api: TestApi;
}

type Command = fc.AsyncCommand<Model, Real>;

const liveOf = ({ published }: Model) => published.at(-1);
/** Returns all versions of the contents that were live last. */
const keptOf = ({ published }: Model) => {
  const contents = new Set(published.toReversed().map(({ contentOf }) => contentOf));
  const kept = [...contents].slice(0, keepVersions);
  return published.filter(({ contentOf }) => kept.includes(contentOf));
};
const contentAt = (model: Model) => liveOf(model)?.content ?? [];
const textsOf = (content: readonly (Product | Drug)[]) => content.map((record) => JSON.stringify(record));
const checksumOf = (content: Content) =>
  createHash('sha256')
    .update(
      textsOf(content)
        .map((text) => `${text}\n`)
        .join(''),
    )
    .digest('hex');

/** One element of an upstream list. */
interface Element {
  readonly value: unknown;
  /** The record, if it is valid. */
  readonly record: Product | null;
  readonly sign: string;
}

function validElement(id: number, variant: number, hasMore: boolean): Element {
  const drugId = 1 + (id % 4);
  const drug = { id: drugId, name: `DRUG ${drugId}${variant === 2 ? ' PLUS' : ''}` };
  const record = product(id, { drug, published: variant !== 1, ...(variant === 2 && { barcodes: [] }) });
  const sign = `${id}${'abc'[variant]}${hasMore ? '+' : ''}`;
  return { value: hasMore ? { more: 1, ...record } : record, record, sign };
}

const flaws: readonly ((id: number) => unknown)[] = [
  (id) => ({ ...product(id), published: 'yes' }),
  (id) => product(id, { barcodes: [{ barcode: '869', skrsStatus: null }] }),
  () => product(0),
  () => null,
  (id) => id,
];

const anyId = fc.constantFrom(...ids);
const element: fc.Arbitrary<Element> = fc.oneof(
  {
    weight: 9,
    arbitrary: fc
      .tuple(anyId, fc.nat(2), fc.nat(9))
      .map(([id, variant, more]) => validElement(id, variant, more === 0)),
  },
  {
    weight: 1,
    arbitrary: fc
      .tuple(anyId, fc.nat(flaws.length - 1))
      .map(([id, flaw]) => ({ value: flaws[flaw]?.(id), record: null, sign: `!${id}/${flaw}` })),
  },
);
const upstreamList = fc.array(element, { maxLength: 12, size: 'max' });

/** Returns the valid records of a list; of records with the same id, the first one. */
function validRecords(list: readonly Element[]): Content {
  const first = new Map<number, Product>();
  for (const { record } of list)
    if (record && !first.has(record.product.id)) first.set(record.product.id, record);
  return [...first.values()];
}

/** Returns the drugs of a content; of drugs with the same id, the first one. */
function drugsOf(content: Content): Drug[] {
  const first = new Map<number, Drug>();
  for (const { drug } of content) if (!first.has(drug.id)) first.set(drug.id, { drug });
  return [...first.values()];
}

interface ExpectedChange {
  readonly id: number;
  readonly change: 'added' | 'changed' | 'removed';
  readonly record?: Product | Drug;
}

/** Returns the changes between two contents, by id. */
function changesBetween(before: Content, after: Content): ExpectedChange[] {
  return changesOf(before, after, (record) => record.product.id);
}

function drugChangesBetween(before: Content, after: Content): ExpectedChange[] {
  return changesOf(drugsOf(before), drugsOf(after), (record) => record.drug.id);
}

function changesOf<Item extends Product | Drug>(
  before: readonly Item[],
  after: readonly Item[],
  idOf: (record: Item) => number,
): ExpectedChange[] {
  const had = new Map(before.map((record) => [idOf(record), JSON.stringify(record)]));
  const has = new Map(after.map((record) => [idOf(record), record]));
  const changed = after
    .filter((record) => had.get(idOf(record)) !== JSON.stringify(record))
    .map((record): ExpectedChange => {
      const id = idOf(record);
      return { id, change: had.has(id) ? 'changed' : 'added', record };
    });
  const removed = [...had.keys()]
    .filter((id) => !has.has(id))
    .map((id): ExpectedChange => ({ id, change: 'removed' }));
  return [...changed, ...removed].sort((a, b) => a.id - b.id);
}

function countsOf(changes: readonly ExpectedChange[]) {
  const count = (kind: ExpectedChange['change']) => changes.filter(({ change }) => change === kind).length;
  return { added: count('added'), changed: count('changed'), removed: count('removed') };
}

/** Adds a published version to the model. */
function publish(
  model: Model,
  number: number,
  { contentOf = number, content }: { contentOf?: number; content: Content },
): void {
  expect(number, 'the new number').to.be.greaterThan(liveOf(model)?.number ?? 0);
  model.published.push({ number, contentOf, content });
  model.rolledBack.delete(checksumOf(content));
}

type Outcome = Extract<ImportOutcome, 'published' | 'candidate' | 'unchanged' | 'refused' | 'paused'>;

/** Returns the expected outcome of an import. */
function outcomeOf(
  model: Model,
  content: Content,
  { force, scheduled, publish: how }: ImportChanges,
): Outcome {
  if (scheduled && model.paused) return 'paused';
  if (content.length === 0) return 'refused';
  const checksum = checksumOf(content);
  if (model.published.length > 0 && checksum === checksumOf(contentAt(model))) return 'unchanged';
  if (model.rolledBack.has(checksum) && !force) return 'refused';
  return how === 'manual' ? 'candidate' : 'published';
}

/** Other tests cover the checks: with these limits they refuse only an empty list. */
const limits = { keepVersions, maxShrinkPercent: 100, maxRejectPercent: 100, maxChangePercent: 100 };

const valuesOf = (list: readonly Element[]) => list.map(({ value }) => value);

async function importList(
  model: Model,
  { redisUrl }: Real,
  list: readonly Element[],
  changes: ImportChanges = {},
): Promise<void> {
  const content = validRecords(list);
  const outcome = outcomeOf(model, content, changes);
  const options = { redisUrl, ...limits, ...changes };
  const report = await importRecords(valuesOf(list), productCollection, options);
  expect(report.outcome, report.reason ?? 'without a reason').to.equal(outcome);
  if (outcome === 'paused') return;
  expect(report).to.deep.include({
    ...{ previousVersion: liveOf(model)?.number ?? null, read: list.length, written: content.length },
    ...{ rejected: list.length - content.length, ...countsOf(changesBetween(contentAt(model), content)) },
  });
  if (outcome === 'published') published(model, report.version as number, content);
  if (report.candidate !== null) {
    const isKept = model.candidate?.number === report.candidate;
    if (isKept) expect(textsOf(content)).to.deep.equal(textsOf(model.candidate?.content ?? []));
    model.candidate = {
      ...{ number: report.candidate, contentOf: report.candidate, content },
      comparedWith: liveOf(model)?.number ?? 0,
    };
  }
  expect(report.candidate !== null).to.equal(
    outcome === 'candidate' || (outcome === 'refused' && content.length > 0),
  );
  const version = outcome === 'candidate' ? report.candidate : liveOf(model)?.number;
  expect(report.version).to.equal(outcome === 'refused' ? null : version);
}

function published(model: Model, number: number, content: Content): void {
  publish(model, number, { content });
  model.paused = false;
  model.lastWasRollback = false;
}

/** Returns the version to which a rollback goes back; `undefined`: there is none. */
function rollbackTarget(model: Model, to: number | null): PublishedVersion | undefined {
  const contentOf = liveOf(model)?.contentOf ?? 0;
  return keptOf(model).findLast(({ number }) => (to === null ? number < contentOf : number === to));
}

async function rollBackTo(model: Model, real: Real, to: number | null): Promise<void> {
  const live = liveOf(model);
  const target = rollbackTarget(model, to);
  const options = to === null ? [] : ['--to', String(to)];
  const { code } = await medref(['rollback', 'products', ...options], { REDIS_URL: real.redisUrl });
  if (live && to === null && model.paused) return expect(code).to.equal(2) as never;
  if (!live || !target) return expect(code).to.equal(1) as never;
  expect(code).to.equal(0);
  const isSame =
    target.contentOf === live.contentOf || checksumOf(target.content) === checksumOf(live.content);
  if (isSame) return;
  model.rolledBack.add(checksumOf(live.content));
  publish(model, await liveNumber(real), target);
  model.paused = true;
  model.lastWasRollback = true;
}

async function liveNumber({ redis }: Real): Promise<number> {
  return JSON.parse((await redis.get(keys.live)) ?? '{}').version ?? 0;
}

/** Publishes or discards the candidate. */
async function concludeCandidate(model: Model, real: Real, how: 'publish' | 'discard'): Promise<void> {
  const { candidate } = model;
  const canPublish = candidate !== null && candidate.comparedWith === (liveOf(model)?.number ?? 0);
  const { code, stderr } = await medref([how, 'products', '--json'], { REDIS_URL: real.redisUrl });
  expect(code, stderr).to.equal(candidate === null || (how === 'publish' && !canPublish) ? 1 : 0);
  if (code !== 0 || candidate === null) return;
  model.candidate = null;
  if (how === 'discard') return;
  expect(await liveNumber(real)).to.equal(candidate.number);
  published(model, candidate.number, candidate.content);
}

/** Kills an import right after one of its Redis commands. Then its version is live, or the version before it. */
async function killImport(model: Model, real: Real, list: readonly Element[], share: number): Promise<void> {
  const upstream = await startUpstreamServer(sending({ data: valuesOf(list) }));
  const before = await liveNumber(real);
  try {
    const chosen = 5 + Math.floor(share * 40);
    await runAndKill({
      ...{ redisPort: real.redisPort, args: ['import', 'products'], moment: 'after' },
      isMeant: ({ nth }) => nth === chosen,
      settings: {
        PRODUCTS_URL: upstream.url().href,
        ...{ MAX_SHRINK_PERCENT: '100', MAX_REJECT_PERCENT: '100', MAX_CHANGE_PERCENT: '100' },
      },
    });
  } finally {
    await upstream.close();
  }
  await real.redis.del(keys.lock);
  const now = await liveNumber(real);
  const content = validRecords(list);
  const candidate = (await readCandidate(real.redis, keys))?.version.version ?? null;
  if (candidate !== null && candidate !== model.candidate?.number) {
    expect(outcomeOf(model, content, {})).to.equal('refused');
    model.candidate = { ...{ number: candidate, contentOf: candidate, content }, comparedWith: before };
  }
  if (now === before) return;
  expect(outcomeOf(model, content, {})).to.equal('published');
  published(model, now, content);
}

/** Reads all elements along the links; every page must be of the expected version. */
async function walk<Item>(api: TestApi, path: string, version: number): Promise<Item[]> {
  const items: Item[] = [];
  for (let next: string | undefined = path; next !== undefined; ) {
    const response: ApiAnswer = await api.get(next);
    expect(response.status, `${next}: ${response.text}`).to.equal(200);
    expect(response.headers.get('medref-version'), next).to.equal(String(version));
    const { data, _links } = response.json<{ data: Item[]; _links: { next?: { href: string } } }>();
    items.push(...data);
    next = _links.next?.href.slice(api.origin.length);
  }
  return items;
}

/** Waits until the API serves the live version; fails after one second. */
async function awaitLive({ api }: Real, number: number): Promise<void> {
  const deadline = Date.now() + 1_000;
  for (;;) {
    const { headers } = await api.get('/products?per-page=1');
    if (headers.get('medref-version') === String(number)) return;
    expect(Date.now(), `version ${number} is not answered from within a second`).to.be.below(deadline);
    await new Promise((resolve) => setTimeout(resolve, 2));
  }
}

async function expectReads(model: Model, real: Real): Promise<void> {
  const { api } = real;
  const live = liveOf(model);
  if (!live) {
    for (const path of ['/products', '/products/1', '/products?version=1', '/products/changes?since=1']) {
      expect((await api.get(path)).status, path).to.equal(503);
    }
    return;
  }
  await awaitLive(real, live.number);
  expect(textsOf(await walk(api, '/products?per-page=5', live.number)), 'the live list').to.deep.equal(
    textsOf(live.content),
  );
  await expectSearches(api, live);
  await Promise.all([
    ...ids.map(async (id) => {
      const record = live.content.find((it) => it.product.id === id);
      const { status, text } = await api.get(`/products/${id}`);
      expect(status, `the record ${id}`).to.equal(record ? 200 : 404);
      if (record) expect(text).to.equal(`{"data":${JSON.stringify(record)},"success":true}`);
    }),
    ...numbersAround(model).map((number) => expectVersion(model, real, live, number)),
  ]);
}

/** Returns all numbers that were ever published and their neighbours, which an import may have taken without a publication. */
function numbersAround({ published, candidate }: Model): number[] {
  const numbers = [...published, ...(candidate ? [candidate] : [])].map(({ number }) => number);
  return [...new Set(numbers.flatMap((number) => [number - 1, number, number + 1]))];
}

/** Searches the live version, with one search of each kind. */
async function expectSearches(api: TestApi, { number, content }: PublishedVersion): Promise<void> {
  const one = content.find(({ product: { id } }) => id < 9);
  const named = content
    .filter(({ product: { name } }) => name.startsWith('DRUG 1'))
    .sort((a, b) => (a.product.name < b.product.name ? -1 : 1));
  const barcode = one?.barcodes[0]?.barcode ?? '8690000000000';
  const coded = content.filter((it) => it.barcodes.some((found) => found.barcode === barcode));
  const plus = drugsOf(content)
    .filter(({ drug: { name } }) => name.startsWith('DRUG 2'))
    .map((record) => JSON.stringify(record));
  expect(textsOf(await walk(api, '/products?name=drug+1&per-page=2', number))).to.deep.equal(textsOf(named));
  expect(textsOf(await walk(api, `/products?barcode=${barcode}`, number))).to.deep.equal(textsOf(coded));
  expect(textsOf(await walk(api, '/drugs?name=Drug%202', number))).to.deep.equal(plus);
  const drug = one?.drug.id ?? 1;
  const ofDrug = content.filter((it) => it.drug.id === drug);
  expect(textsOf(await walk(api, `/products?drug=${drug}&per-page=2`, number))).to.deep.equal(
    textsOf(ofDrug),
  );
  const both = named.filter((it) => it.drug.id === drug);
  expect(textsOf(await walk(api, `/products?drug=${drug}&name=drug+1`, number))).to.deep.equal(textsOf(both));
  const asked = ids.toReversed();
  const present = asked.flatMap((id) => content.find((it) => it.product.id === id) ?? []);
  expect(textsOf(await walk(api, `/products?ids=${asked}&per-page=3`, number))).to.deep.equal(
    textsOf(present),
  );
}

/** Reads by a number: of a kept version, of a deleted version, or of none. */
async function expectVersion(
  model: Model,
  real: Real,
  live: PublishedVersion,
  number: number,
): Promise<void> {
  const { api } = real;
  const version = model.published.find((it) => it.number === number);
  const pinned = `/products?version=${number}`;
  if (version && keptOf(model).includes(version)) {
    expect(textsOf(await walk(api, pinned, number)), pinned).to.deep.equal(textsOf(version.content));
    const [record] = version.content.toReversed();
    const { text } = await api.get(`/products/${record?.product.id}?version=${number}`);
    expect(text).to.equal(`{"data":${JSON.stringify(record)},"success":true}`);
    const drugs = await walk<Drug>(api, `/drugs?version=${number}&per-page=3`, number);
    expect(textsOf(drugs), `drugs of ${number}`).to.deep.equal(textsOf(drugsOf(version.content)));
  } else {
    for (const path of [pinned, `/drugs?version=${number}`])
      expect((await api.get(path)).status, path).to.equal(410);
  }
  if (version) return expectChanges(real, version, live);
  const { status } = await api.get(`/products/changes?since=${number}`);
  expect(status, `changes since ${number}`).to.equal(410);
}

async function expectChanges(
  { api }: Real,
  since: PublishedVersion,
  until: PublishedVersion,
  query = '',
): Promise<void> {
  const path = `/products/changes?since=${since.number}${query}`;
  const found = await walk<ExpectedChange>(api, path, until.number);
  const expected = changesBetween(since.content, until.content);
  expect(found, `${path} to ${until.number}`).to.deep.equal(expected);
  const ofDrugs = path.replace('/products', '/drugs');
  expect(await walk(api, ofDrugs, until.number), `${ofDrugs} to ${until.number}`).to.deep.equal(
    drugChangesBetween(since.content, until.content),
  );
}

async function expectKeySpace(model: Model, { redis }: Real): Promise<void> {
  const { live } = await checkKeySpace(redis, 'products', {
    rolledBack: model.lastWasRollback && model.paused,
  });
  expect(live?.version).to.equal(liveOf(model)?.number);
}

/** Returns a command with a name, which a failure prints. After the command, everything is compared with the model. */
function command(name: string, run: (model: Model, real: Real) => Promise<void>): Command {
  return {
    check: () => true,
    run: async (model, real) => {
      await run(model, real);
      await expectKeySpace(model, real);
      await expectReads(model, real);
    },
    toString: () => name,
  };
}

const signs = (list: readonly Element[]) => `[${list.map(({ sign }) => sign).join(' ')}]`;

/** Returns one of the items, for any number. */
function pick<Item>(items: readonly Item[], n: number): Item | undefined {
  return items[n % items.length];
}

const any = fc.nat(11);

const imports = upstreamList.map((list) =>
  command(`import ${signs(list)}`, (model, real) => importList(model, real, list)),
);
const scheduledImports = upstreamList.map((list) =>
  command(`import ${signs(list)} by the schedule`, (model, real) =>
    importList(model, real, list, { scheduled: true }),
  ),
);
/** Imports that publish known records again: the live content, a content that was rolled back, or an older one. */
const repeatedImports = fc.tuple(any, fc.boolean()).map(([n, force]) =>
  command(`import what was published, -${n}${force ? ', --force' : ''}`, (model, real) => {
    const content = pick(model.published.toReversed(), n)?.content ?? [];
    const list = content.map((record) => ({ value: record, record, sign: '' }));
    return importList(model, real, list, { force });
  }),
);
const reorderedImports = fc.constant(
  command('import the live records in reverse', (model, real) => {
    const list = contentAt(model).map((record) => ({ value: record, record, sign: '' }));
    return importList(model, real, list.reverse());
  }),
);
const manualImports = upstreamList.map((list) =>
  command(`import ${signs(list)} with PUBLISH=manual`, (model, real) =>
    importList(model, real, list, { publish: 'manual' }),
  ),
);
const publications = fc.constant(
  command('publish', (model, real) => concludeCandidate(model, real, 'publish')),
);
/** Without a change in between, which publishes what was imported. */
const approvals = upstreamList.map((list) =>
  command(`import ${signs(list)} with PUBLISH=manual, and publish`, async (model, real) => {
    await importList(model, real, list, { publish: 'manual' });
    await concludeCandidate(model, real, 'publish');
  }),
);
const discards = fc.constant(command('discard', (model, real) => concludeCandidate(model, real, 'discard')));
const forcedImports = upstreamList.map((list) =>
  command(`import ${signs(list)} --force`, (model, real) => importList(model, real, list, { force: true })),
);
const dryRuns = upstreamList.map((list) =>
  command(`import ${signs(list)} --dry-run`, async (_model, { redisUrl }) => {
    const report = await importRecords(valuesOf(list), productCollection, { redisUrl, dryRun: true });
    expect(report.outcome).to.equal('dry-run');
  }),
);
const rollbacks = fc.constant(command('rollback', (model, real) => rollBackTo(model, real, null)));
const schedulesAfterRollbacks = upstreamList.map((list) =>
  command(`rollback, and import ${signs(list)} by the schedule`, async (model, real) => {
    await rollBackTo(model, real, null);
    await importList(model, real, list, { scheduled: true });
  }),
);
const rollbacksTo = any.map((n) =>
  command(`rollback --to a kept or the next number, ${n}`, (model, real) => {
    const numbers = [...keptOf(model).map(({ number }) => number), (liveOf(model)?.number ?? 0) + 1];
    return rollBackTo(model, real, pick(numbers, n) as number);
  }),
);
const deaths = fc
  .tuple(upstreamList, fc.double({ min: 0, max: 1, noNaN: true }))
  .map(([list, share]) =>
    command(`be killed at ${share.toFixed(2)} of an import of ${signs(list)}`, (model, real) =>
      killImport(model, real, list, share),
    ),
  );
const lockedOut = upstreamList.map((list) =>
  command(
    `import ${signs(list)} and rollback while another import runs`,
    async (_model, { redis, redisUrl }) => {
      let end = () => {};
      const upstream = await startUpstreamServer((response) => {
        end = () => void response.end('[]');
      });
      const other = importFrom(upstream.url(), productCollection, { redisUrl });
      try {
        while (upstream.requests.length === 0 || !(await redis.exists(keys.lock))) await sleep(2);
        const { outcome } = await importRecords(valuesOf(list), productCollection, { redisUrl, force: true });
        expect(outcome).to.equal('locked');
        expect((await medref(['rollback', 'products'], { REDIS_URL: redisUrl })).code).to.equal(4);
      } finally {
        end();
        expect((await other).outcome).to.equal('refused');
        await upstream.close();
      }
    },
  ),
);
const resumes = fc.constant(
  command('resume', async (model, { redisUrl }) => {
    expect((await medref(['resume', 'products'], { REDIS_URL: redisUrl })).code).to.equal(0);
    model.paused = false;
  }),
);
/** Walks along the links of a kept version, page by page, while an import publishes. */
const walksDuringImports = fc
  .tuple(upstreamList, fc.nat(1), fc.integer({ min: 1, max: 3 }))
  .map(([list, n, perPage]) =>
    command(
      `walk by ${perPage} one of the last two while ${signs(list)} is imported`,
      async (model, real) => {
        const pinned = pick(model.published.slice(-2), n);
        const importing = importList(model, real, list);
        try {
          if (!pinned) return;
          const { number, content } = pinned;
          const path = `/products?version=${number}&per-page=${perPage}`;
          expect(textsOf(await walk(real.api, path, number))).to.deep.equal(textsOf(content));
        } finally {
          await importing;
        }
      },
    ),
  );
/** Reads of the changes between any published version and any kept one. */
const changeWalks = fc.tuple(any, any, fc.integer({ min: 1, max: 3 })).map(([from, to, perPage]) =>
  command(`walk changes from ${from} to the kept ${to} by ${perPage}`, async (model, real) => {
    const until = pick(keptOf(model), to);
    const since = pick(model.published, from);
    if (!until || !since) return;
    const query = `&version=${until.number}&per-page=${perPage}`;
    if (since.number <= until.number) return expectChanges(real, since, until, query);
    const { status } = await real.api.get(`/products/changes?since=${since.number}${query}`);
    expect(status).to.equal(400);
  }),
);

describe('the service and its model', function () {
  this.timeout(600_000);
  const server = useRedis();
  /** How many sequences of commands run; `npm run prove` runs more. */
  const numRuns = isFull ? 200 : 4;
  let redis: Redis;
  before(async () => {
    redis = await connectForWriting(server().url);
  });
  after(() => redis.disconnect());

  it('agree after every command, in any order of imports, kills and rollbacks', async () => {
    let runs = 0;
    let commandsRun = 0;
    const anyCommand = [
      ...[imports, imports, imports, repeatedImports, repeatedImports, reorderedImports, forcedImports],
      ...[scheduledImports, dryRuns, rollbacks, rollbacks, rollbacksTo, rollbacksTo, deaths, lockedOut],
      ...[manualImports, approvals, publications, discards],
      ...[schedulesAfterRollbacks, resumes, walksDuringImports, changeWalks, changeWalks],
    ];
    const property = fc.asyncProperty(
      fc.commands(anyCommand, { maxCommands: 20, size: 'max' }),
      async (commands) => {
        await redis.flushall();
        await redis.set(keys.next, aheadOfClock);
        const { url: redisUrl, port: redisPort } = server();
        const api = await startApi({ redisUrl });
        try {
          const model: Model = {
            published: [],
            rolledBack: new Set(),
            paused: false,
            lastWasRollback: false,
            candidate: null,
          };
          const real = { redis, redisUrl, redisPort, api };
          await fc.asyncModelRun(() => ({ model, real }), commands);
          runs += 1;
          commandsRun += [...commands].length;
        } finally {
          await api.stop();
        }
      },
    );
    // A failure prints its seed, path and replayPath, which repeat the run.
    await fc.assert(property, { numRuns, includeErrorInReport: true });
    expect(runs, 'sequences of commands that were run to their end').to.equal(numRuns);
    expect(commandsRun).to.be.above((numRuns > 50 ? 4 : 1) * numRuns);
    note(`${runs} runs, ${commandsRun} commands`);
  });
});
