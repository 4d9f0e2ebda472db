// The whole service against a model of it that fits on a page: random imports, deaths and rollbacks, and after each of
// them everything that readers see and everything that Redis holds.

import { createHash } from 'node:crypto';
import { expect } from 'chai';
import fc from 'fast-check';
import { Lease } from '../importer/lease.ts';
import type { SourceRecord } from '../importer/parse/pages.ts';
import { compareVersions } from '../importer/publishing/compare-versions.ts';
import type { ImportOutcome } from '../importer/report.ts';
import { liftHold, RollbackError, rollBack, VersionRequiredError } from '../importer/rollback.ts';
import { contentKeys } from '../importer/scripts/key-lists.ts';
import { VersionWriter } from '../importer/writing/version-writer.ts';
import type { Drug } from '../shared/collections/drug.ts';
import { type Product, products as productCollection } from '../shared/collections/product.ts';
import { currentFormat } from '../shared/formats/content-format.ts';
import { connectForWriting, type Redis } from '../shared/redis/connections.ts';
import { readKeptVersions, readLiveVersion } from '../shared/store/versions.ts';
import { isFull } from './proof/proof.ts';
import { type ApiAnswer, startApi, type TestApi } from './support/api.ts';
import { type ImportChanges, importRecords } from './support/importing.ts';
import { productKeys as keys } from './support/keys.ts';
import { product } from './support/records.ts';
import { useRedis } from './support/redis-server.ts';

const keepVersions = 3;
const ids = [1, 2, 3, 9, 10, 11];

/** What a version holds: its records in order. */
type Content = readonly Product[];

interface PublishedVersion {
  readonly number: number;
  /** The number under which the content was first published. */
  readonly contentOf: number;
  readonly content: Content;
}

/** What the service is meant to be, in a few variables. */
interface Model {
  /** All that were ever published, oldest first. */
  readonly published: PublishedVersion[];
  readonly undone: Set<string>;
  hold: boolean;
  /** What killed imports left under an expiry since the last sweep. */
  readonly dead: Set<string>;
  /** Whether an import or a rollback has ended that writes history, and an import that writes rejects. */
  history: boolean;
  rejects: boolean;
  /** Whether it is known when upstream was as what is live; not after a rollback. */
  checked: boolean;
}

/** What the model is compared with. */
interface Real {
  readonly redis: Redis;
  readonly redisUrl: string;
  readonly api: TestApi;
}

type Command = fc.AsyncCommand<Model, Real>;

const liveOf = ({ published }: Model) => published.at(-1);
/** All versions of the contents that were live last. */
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
  /** The record that it is, where it is valid. */
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

/** The valid records of a list, without those whose id came before. */
function validRecords(list: readonly Element[]): Content {
  const first = new Map<number, Product>();
  for (const { record } of list)
    if (record && !first.has(record.product.id)) first.set(record.product.id, record);
  return [...first.values()];
}

/** The drugs of a content: of those with the same id, the first one. */
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

/** What changed between two contents, by id. */
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

/** What is published, by the model. */
function publish(model: Model, number: number, contentOf: number, content: Content): void {
  expect(number, 'the new number').to.be.greaterThan(liveOf(model)?.number ?? 0);
  model.published.push({ number, contentOf, content });
  model.undone.delete(checksumOf(content));
}

type Outcome = Extract<ImportOutcome, 'published' | 'unchanged' | 'refused' | 'held'>;

/** How an import is meant to end. */
function outcomeOf(model: Model, content: Content, { force, scheduled }: ImportChanges): Outcome {
  if (scheduled && model.hold) return 'held';
  if (content.length === 0) return 'refused';
  const checksum = checksumOf(content);
  if (model.published.length > 0 && checksum === checksumOf(contentAt(model))) return 'unchanged';
  return model.undone.has(checksum) && !force ? 'refused' : 'published';
}

async function importList(
  model: Model,
  { redisUrl }: Real,
  list: readonly Element[],
  changes: ImportChanges = {},
): Promise<void> {
  const content = validRecords(list);
  const outcome = outcomeOf(model, content, changes);
  const report = await importRecords(
    list.map(({ value }) => value),
    productCollection,
    {
      ...{ redisUrl, keepVersions, maxShrinkPercent: 100, maxRejectPercent: 100, maxChangePercent: 100 },
      ...changes,
    },
  );
  expect(report.outcome, report.reason ?? 'without a reason').to.equal(outcome);
  model.history = true;
  if (outcome === 'held') return;
  expect(report).to.deep.include({
    ...{ previousVersion: liveOf(model)?.number ?? null, read: list.length, written: content.length },
    ...{ rejected: list.length - content.length, ...countsOf(changesBetween(contentAt(model), content)) },
  });
  model.dead.clear();
  // An import that read nothing leaves the rejects of the one before.
  model.rejects ||= list.length > 0;
  model.checked ||= outcome === 'published' || outcome === 'unchanged';
  if (outcome === 'published') {
    publish(model, report.version as number, report.version as number, content);
    model.hold = false;
  }
  expect(report.version).to.equal(outcome === 'refused' ? null : liveOf(model)?.number);
}

/** The version that a rollback goes back to; `undefined`: there is none. */
function rollbackTarget(model: Model, to: number | null): PublishedVersion | undefined {
  const contentOf = liveOf(model)?.contentOf ?? 0;
  return keptOf(model).findLast(({ number }) => (to === null ? number < contentOf : number === to));
}

async function rollBackTo(model: Model, { redis }: Real, to: number | null): Promise<void> {
  const live = liveOf(model);
  const target = rollbackTarget(model, to);
  const context = { redis, keyPrefix: 'medref', to, maxNumberWaitMs: 0 };
  const result = await rollBack(productCollection, context).catch((error: unknown) => error);
  if (live && to === null && model.hold) {
    expect(result).to.be.instanceOf(VersionRequiredError);
  } else if (!live || !target) {
    expect(result).to.be.instanceOf(RollbackError);
  } else if (target.contentOf === live.contentOf || checksumOf(target.content) === checksumOf(live.content)) {
    expect(result).to.deep.equal({ outcome: 'unchanged', version: live.number });
  } else {
    expect(result).to.deep.include({ outcome: 'rolled-back', contentOf: target.contentOf });
    const { report } = result as { report: { version: number } };
    expect(report).to.deep.include({
      ...{ outcome: 'rolled-back', previousVersion: live.number },
      ...countsOf(changesBetween(live.content, target.content)),
    });
    model.undone.add(checksumOf(live.content));
    publish(model, report.version, target.contentOf, target.content);
    model.hold = true;
    model.checked = false;
    model.history = true;
    model.dead.clear();
  }
}

/** A record as the reader of upstream gives it. */
function sourceRecord(value: unknown, i: number): SourceRecord {
  return { position: i + 1, value, flaw: null, raw: () => JSON.stringify(value) };
}

/** How far an import comes before it is killed. */
type Death = 'locked' | 'begun' | 'staged' | 'finished' | 'compared';

async function dieImporting(
  model: Model,
  { redis }: Real,
  list: readonly Element[],
  death: Death,
): Promise<void> {
  const lock = await Lease.take(redis, keys);
  if ('holder' in lock) throw new Error(`The lock is held by ${lock.holder}.`);
  try {
    if (death === 'locked') return;
    const staging = await lock.begin('');
    const number = staging.name as number;
    model.dead.add(keys.staged);
    const content = validRecords(list);
    if (death === 'begun' || content.length === 0) return;
    const writer = new VersionWriter(redis, staging, productCollection);
    await writer.write({
      records: content.map(sourceRecord),
      bytes: 1,
      page: 1,
      arrival: { bytes: 0, of: null },
    });
    await writer.flush();
    const isFinished = death !== 'staged';
    // Order, blocks and the search index are written when all records are there, since these lists have less than a block.
    for (const part of keys.parts) {
      const { records, ...others } = part.content(number);
      const { positions, sorting } = part.workspace(number);
      for (const key of [records, positions]) model.dead.add(key);
      if (isFinished) for (const key of [...Object.values<string>(others), sorting]) model.dead.add(key);
    }
    if (!isFinished) return;
    const { content: facts, derived } = await writer.finish();
    const live = await readLiveVersion(redis, keys);
    if (death === 'finished' || !live) return;
    await compareVersions(redis, staging, {
      before: live,
      after: { ...facts, stored: number, format: currentFormat, derived },
    });
    for (const key of changeSetKeys(contentAt(model), content, number)) model.dead.add(key);
  } finally {
    await redis.del(keys.lock);
    await lock.release(); // Ends its timer; the lock itself is not its any more.
  }
}

/** All elements along the links, by pages of a version each; every page is of the one version that is expected. */
async function walk<Item>(api: TestApi, path: string, version: number): Promise<Item[]> {
  const items: Item[] = [];
  for (let next: string | undefined = path; next !== undefined; ) {
    const answer: ApiAnswer = await api.get(next);
    expect(answer.status, `${next}: ${answer.text}`).to.equal(200);
    expect(answer.headers.get('medref-version'), next).to.equal(String(version));
    const { data, _links } = answer.json<{ data: Item[]; _links: { next?: { href: string } } }>();
    items.push(...data);
    next = _links.next?.href.slice(api.origin.length);
  }
  return items;
}

/** Waits until the API answers from the live version; a second at the most. */
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

/** The numbers of all that were ever published, and those beside them: of imports that published nothing, or of none. */
function numbersAround({ published }: Model): number[] {
  return [...new Set(published.flatMap(({ number }) => [number - 1, number, number + 1]))];
}

/** Searches of what is live, one of each kind. */
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

/** What is read by a number: of a kept version, of one that was let go, or of none. */
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

/** Every key, told by whether it stays; the API's keys and theirs are left out. */
async function readKeys(redis: Redis): Promise<{ staying: string[]; expiring: string[] }> {
  const found = await redis.keys('medref:{*');
  const lifetimes = await Promise.all(found.map((key) => redis.pttl(key)));
  const keysWhere = (isExpiring: boolean) =>
    found.filter((_, i) => (lifetimes[i] as number) > 0 === isExpiring).sort();
  return { staying: keysWhere(false), expiring: keysWhere(true) };
}

function keysOfContents(contents: ReadonlySet<number>): string[] {
  return [...contents].flatMap((number) => contentKeys(keys, number));
}

/** The change sets of a version that is not published: those that are not empty. */
function changeSetKeys(before: Content, after: Content, number: number): string[] {
  const ofDrugs = drugChangesBetween(before, after).length > 0;
  return [
    ...(changesBetween(before, after).length > 0 ? [keys.changeSet(number)] : []),
    ...(ofDrugs ? [keys.derived('drugs').changeSet(number)] : []),
  ];
}

async function expectKeySpace(model: Model, { redis }: Real): Promise<void> {
  const { published, undone, hold, dead, history, rejects, checked } = model;
  const keptContents = new Set(keptOf(model).map(({ contentOf }) => contentOf));
  const leftContents = new Set(
    published.map(({ contentOf }) => contentOf).filter((it) => !keptContents.has(it)),
  );
  const changeSets = published
    .slice(1)
    .flatMap(({ number }) => keys.parts.map((part) => part.changeSet(number)));
  // A number is given out before anything is known of what it will hold, to those who die too.
  const hasNext = published.length > 0 || (await redis.exists(keys.next)) === 1;
  const onceLive = [keys.live, keys.versions, keys.versionDocuments, keys.changeSets];
  // Nothing is damaged, so that readers have nothing to mark as `damaged`.
  const { staying, expiring } = await readKeys(redis);
  expect(staying, 'keys that stay').to.deep.equal(
    [
      ...(hasNext ? [keys.next] : []),
      ...(published.length > 0 ? onceLive : []),
      ...(history ? [keys.imports] : []),
      ...(rejects ? [keys.rejects] : []),
      ...(checked ? [keys.checked] : []),
      ...(hold ? [keys.hold] : []),
      ...(undone.size > 0 ? [keys.undone] : []),
      ...keysOfContents(keptContents),
      ...changeSets,
    ].sort(),
  );
  expect(expiring, 'keys that expire').to.deep.equal([...keysOfContents(leftContents), ...dead].sort());
  expect((await redis.smembers(keys.undone)).sort()).to.deep.equal([...undone].sort());
  const kept = await readKeptVersions(redis, keys);
  expect(kept.map(({ version, content, checksum }) => ({ version, content, checksum }))).to.deep.equal(
    keptOf(model).map(({ number, contentOf, content }) => ({
      ...{ version: number, content: contentOf, checksum: checksumOf(content) },
    })),
  );
}

/** A command by its name, which is what a failure prints; after it, all is compared with the model. */
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

/** One of these, by any number. */
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
/** What was published before comes again: the live content, or one that was rolled back from, or an older one. */
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
const forcedImports = upstreamList.map((list) =>
  command(`import ${signs(list)} --force`, (model, real) => importList(model, real, list, { force: true })),
);
const dryRuns = upstreamList.map((list) =>
  command(`import ${signs(list)} --dry-run`, async (model, { redisUrl }) => {
    const values = list.map(({ value }) => value);
    const report = await importRecords(values, productCollection, { redisUrl, dryRun: true });
    expect(report.outcome).to.equal('dry-run');
    model.dead.clear();
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
  .tuple(upstreamList, fc.constantFrom<Death>('locked', 'begun', 'staged', 'finished', 'compared'))
  .map(([list, death]) =>
    command(`die once ${death} importing ${signs(list)}`, (model, real) =>
      dieImporting(model, real, list, death),
    ),
  );
const lockedOut = upstreamList.map((list) =>
  command(`import ${signs(list)} and rollback while another holds the lock`, async (model, real) => {
    const { redis, redisUrl } = real;
    const lock = await Lease.take(redis, keys);
    if ('holder' in lock) throw new Error(`The lock is held by ${lock.holder}.`);
    try {
      const values = list.map(({ value }) => value);
      const { outcome } = await importRecords(values, productCollection, { redisUrl, force: true });
      expect(outcome).to.equal('locked');
      model.history = true;
      const context = { redis, keyPrefix: 'medref', to: null, maxNumberWaitMs: 0 };
      expect((await rollBack(productCollection, context)).outcome).to.equal('locked');
    } finally {
      await lock.release();
    }
  }),
);
const resumes = fc.constant(
  command('resume', async (model, { redis }) => {
    expect(await liftHold(redis, keys)).to.equal(model.hold);
    model.hold = false;
  }),
);
/** Along the links of one that stays kept, page by page, while an import publishes. */
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
/** Between any published version and any kept one. */
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
  /** How many sequences of commands; `npm run prove` runs more of them. */
  const numRuns = isFull ? 200 : 4;
  let redis: Redis;
  before(async () => {
    redis = await connectForWriting(server().url);
  });
  after(() => redis.disconnect());

  it('agree after every command, whatever is imported, killed and rolled back in whatever order', async function () {
    let runs = 0;
    let commandsRun = 0;
    const anyCommand = [
      ...[imports, imports, imports, repeatedImports, repeatedImports, reorderedImports, forcedImports],
      ...[scheduledImports, dryRuns, rollbacks, rollbacks, rollbacksTo, rollbacksTo, deaths, lockedOut],
      ...[schedulesAfterRollbacks, resumes, walksDuringImports, changeWalks, changeWalks],
    ];
    const property = fc.asyncProperty(
      fc.commands(anyCommand, { maxCommands: 20, size: 'max' }),
      async (commands) => {
        await redis.flushall();
        const redisUrl = server().url;
        const api = await startApi({ redisUrl });
        try {
          const model: Model = {
            ...{ published: [], undone: new Set<string>(), dead: new Set<string>() },
            ...{ hold: false, history: false, rejects: false, checked: false },
          };
          await fc.asyncModelRun(() => ({ model, real: { redis, redisUrl, api } }), commands);
          runs += 1;
          commandsRun += [...commands].length;
        } finally {
          await api.stop();
        }
      },
    );
    // A failure names its seed and path, for these options, and its replayPath, for those of fc.commands:
    // with the three of them the same run comes again.
    await fc.assert(property, {
      ...{ numRuns, includeErrorInReport: true },
    });
    expect(runs, 'sequences of commands that were run to their end').to.equal(numRuns);
    // Of many, some are short and some long; few may all be short.
    expect(commandsRun).to.be.above((numRuns > 50 ? 4 : 1) * numRuns);
    if (this.test) this.test.title += `: ${runs} runs, ${commandsRun} commands`;
  });
});
