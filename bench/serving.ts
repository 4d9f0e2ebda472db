// The row group `serving`: the real list, medref against what else could serve it. In: a run. Out: its rows.

import type { Product } from '../shared/collections/product.ts';
import { ask, askSome, typicalOf, type WireAnswer } from './answers.ts';
import type { BenchRun } from './bench-run.ts';
import { type Contender, type Expectation, measureRows, type Row } from './contenders.ts';
import { onPath } from './installed.ts';
import type { LoadRequest } from './load.ts';
import { createKey } from './medref.ts';
import { writeConstants } from './peers/constant-answers.ts';
import { startJsonServer } from './peers/json-server.ts';
import { startNginx, writePages } from './peers/nginx.ts';
import { readProducts } from './peers/paged-list.ts';
import { postgresPrograms, startPostgres } from './peers/postgres.ts';
import { builtProgram } from './project.ts';
import { type Fields, fieldsOf, fullPages, idLists, namePrefixes, requestsFor } from './requests.ts';
import type { GroupResult } from './results.ts';
import { type Service, startService } from './service.ts';

/** Measures the rows of serving. */
export async function measureServing(run: BenchRun): Promise<GroupResult> {
  const products = readProducts(run.list);
  const service = await startService(run, run.list);
  const medref = await medrefContenders(run, service, products);
  const peers = await startPeers(run, service, { medref, products });
  const result = await measureRows(run, rows(medref, peers));
  for (const stop of peers.stops.reverse()) await stop();
  await service.stop();
  return result;
}

/** The table of contents: who is measured against whom, and what is asked of medref. */
function rows(medref: MedrefContenders, peers: Peers): Row[] {
  const { limit } = peers;
  return [
    { subject: medref.page, against: limit.page, target: { atLeast: 0.95 } },
    { subject: medref.ratedPage, against: medref.page, target: { atLeast: 0.9 } },
    { subject: medref.page, against: peers.plain, target: { atLeast: 15 } },
    { subject: medref.page, against: peers.jsonServer, target: { atLeast: 100 } },
    { subject: medref.record, against: limit.record, target: { atLeast: 0.95 } },
    { subject: medref.notModified, against: limit.page, target: { atLeast: 1 } },
    { subject: medref.page50, against: limit.page50, target: { atLeast: 0.9 } },
    { subject: medref.page10, against: limit.page10, target: { atLeast: 0.8 } },
    { subject: medref.page30, against: limit.page30, target: { atLeast: 0.6 } },
    { subject: medref.identityPage, against: limit.page, target: { atLeast: 0.45 } },
    { subject: medref.nameSearch, against: limit.page, target: { atLeast: 0.6 } },
    { subject: medref.barcode, against: limit.page, target: null },
    { subject: medref.drug, against: limit.page, target: null },
    { subject: medref.ids20, against: limit.page10, target: null },
    { subject: medref.ids200, against: limit.page, target: null },
    { subject: medref.page, against: peers.postgres, target: null },
    { subject: medref.page, against: peers.nginx, target: null },
    { subject: limit.page, against: peers.bareHttp, target: null },
    { subject: medref.notModified, against: limit.notModified, target: null },
    { subject: medref.identityPage, against: limit.identityPage, target: null },
  ];
}

// ---- medref

type MedrefContender = Extract<Contender, { requests: unknown }>;
type MedrefContenders = Readonly<
  Record<
    | 'page'
    | 'ratedPage'
    | 'identityPage'
    | 'page50'
    | 'page30'
    | 'page10'
    | 'record'
    | 'notModified'
    | 'nameSearch'
    | 'barcode'
    | 'drug'
    | 'ids20'
    | 'ids200',
    MedrefContender
  >
>;

async function medrefContenders(
  run: BenchRun,
  service: Service,
  products: readonly Product[],
): Promise<MedrefContenders> {
  const gzip = fieldsOf(service.key, 'gzip');
  // More than any process answers: what is measured is what counting costs.
  const ratedKey = await createKey(run.workspace, service.store, '1000000/s');
  const contender = (
    name: string,
    requests: readonly LoadRequest[],
    expects: Expectation,
  ): MedrefContender => ({
    ...{ name: `medref: ${name}`, requests, expects, isMedref: true },
    ...{ origin: service.origin, serverPid: service.pid, storePid: service.redisPid },
  });
  const pages = (perPage: number, fields: Fields, encoding: Expectation['encoding']) =>
    contender(
      `page of ${perPage}${encodingNames[encoding]}`,
      requestsFor(paths('/products', fullPages(products.length, perPage)), fields),
      { status: 200, encoding, records: perPage },
    );
  const page = pages(200, gzip, 'gzip');
  const prefixes = namePrefixes(products).map((it) => `name=${encodeURIComponent(it)}&per-page=10`);
  const barcodes = products.flatMap((it) => it.barcodes.map(({ barcode }) => `barcode=${barcode}`));
  const drugs = [...new Set(products.map(({ drug }) => `drug=${drug.id}`))];
  const byIds = (size: number, encoding: Expectation['encoding']) => {
    const requests = requestsFor(
      paths(
        '/products',
        idLists(products, size).map((it) => `ids=${it}`),
      ),
      gzip,
    );
    return contender(`${size} records by their ids`, requests, { status: 200, encoding, records: size });
  };
  const ids = products.map((it) => `/products/${it.product.id}`);
  const some = { status: 200, encoding: 'either', records: 'some' } as const;
  return {
    page,
    ratedPage: contender(
      'page of 200, gzip, to a key with a rate',
      requestsFor(paths('/products', fullPages(products.length, 200)), fieldsOf(ratedKey, 'gzip')),
      page.expects,
    ),
    identityPage: pages(200, fieldsOf(service.key, 'identity'), 'identity'),
    page50: pages(50, gzip, 'either'),
    page30: pages(30, gzip, 'either'),
    page10: pages(10, gzip, 'either'),
    record: contender('one record by its id', requestsFor(ids, gzip), some),
    notModified: contender('304 for a page of 200', await revalidating(service.origin, page.requests), {
      ...{ status: 304, encoding: 'either' },
    }),
    nameSearch: contender(
      'search by 3 letters, 10 a page',
      requestsFor(paths('/products', prefixes), gzip),
      some,
    ),
    barcode: contender('search by barcode', requestsFor(paths('/products', barcodes), gzip), some),
    drug: contender('search by drug', requestsFor(paths('/products', drugs), gzip), some),
    ids20: byIds(20, 'either'),
    ids200: byIds(200, 'gzip'),
  };
}

/** An answer that may be either is small enough not to be compressed, or else it is gzip. */
const encodingNames = { gzip: ', gzip', identity: ', identity', either: '' } as const;

const paths = (path: string, queries: readonly string[]) => queries.map((query) => `${path}?${query}`);

/** The same requests by a client that holds the answers. */
async function revalidating(origin: string, requests: readonly LoadRequest[]): Promise<LoadRequest[]> {
  const revalidations: LoadRequest[] = [];
  for (const request of requests) {
    const { headers } = await ask(origin, request);
    const etag = headers['etag'] ?? '*';
    revalidations.push({ ...request, headers: { ...request.headers, 'If-None-Match': etag } });
  }
  return revalidations;
}

// ---- peers

interface Peers {
  readonly limit: Readonly<Record<LimitName, Contender>>;
  readonly bareHttp: Contender;
  readonly plain: Contender;
  readonly jsonServer: Contender;
  readonly postgres: Contender;
  readonly nginx: Contender;
  readonly stops: (() => Promise<void>)[];
}

interface PeerNeeds {
  readonly medref: MedrefContenders;
  readonly products: readonly Product[];
}

type LimitName = 'page' | 'identityPage' | 'page50' | 'page30' | 'page10' | 'record' | 'notModified';

async function startPeers(run: BenchRun, service: Service, needs: PeerNeeds): Promise<Peers> {
  run.say('starting the peers');
  const stops: (() => Promise<void>)[] = [];
  const keep = <C extends { stop(): Promise<void> }>(child: C): C => {
    stops.push(() => child.stop());
    return child;
  };
  const context: PeerContext = { run, service, needs, keep };
  const samples = await typicalAnswers(needs.medref);
  const limit = await startLimit(context, samples);
  const bareHttp = await startBareHttp(context, samples.page);
  const plain = await startPlain(context);
  const jsonServer = await jsonServerContender(context);
  const postgres = await postgresContender(context);
  const nginx = await nginxContender(context);
  return { limit, bareHttp, plain, jsonServer, postgres, nginx, stops };
}

interface PeerContext {
  readonly run: BenchRun;
  readonly service: Service;
  readonly needs: PeerNeeds;
  keep<C extends { stop(): Promise<void> }>(child: C): C;
}

/** The answers of medref that the constants are: of middling size among some, with all of its headers. */
async function typicalAnswers(medref: MedrefContenders): Promise<Record<LimitName, WireAnswer>> {
  const typical = async ({ origin, requests }: MedrefContender) => typicalOf(await askSome(origin, requests));
  return {
    page: await typical(medref.page),
    identityPage: await typical(medref.identityPage),
    page50: await typical(medref.page50),
    page30: await typical(medref.page30),
    page10: await typical(medref.page10),
    record: await typical(medref.record),
    notModified: await typical(medref.notModified),
  };
}

/** Asked with the very query strings and header fields that medref is asked with. */
async function startLimit(
  { run, service, needs, keep }: PeerContext,
  samples: Record<LimitName, WireAnswer>,
): Promise<Record<LimitName, Contender>> {
  const file = run.workspace.path('limit.json');
  const routes: Record<LimitName, string> = {
    page: '/page',
    identityPage: '/identity-page',
    page50: '/page-50',
    page30: '/page-30',
    page10: '/page-10',
    record: '/record/{id}',
    notModified: '/not-modified',
  };
  const names = Object.keys(routes) as LimitName[];
  await writeConstants(file, new Map(names.map((name) => [routes[name], samples[name]])));
  const server = keep(await startPeer(run, 'limit.js', { ...service.store, file }));
  const contender = (name: LimitName): Contender => {
    const { name: whose, requests, expects } = needs.medref[name];
    const prefix = routes[name].replace('/{id}', '');
    return {
      name: whose.replace('medref: ', 'the limit: '),
      ...{ origin: server.address, serverPid: server.pid, storePid: service.redisPid },
      requests: requests.map((it) => ({ ...it, path: it.path.replace('/products', prefix) })),
      expects: { status: expects.status, encoding: expects.encoding },
    };
  };
  return Object.fromEntries(names.map((name) => [name, contender(name)])) as Record<LimitName, Contender>;
}

async function startBareHttp({ run, needs, keep }: PeerContext, page: WireAnswer): Promise<Contender> {
  const file = run.workspace.path('bare-http.json');
  await writeConstants(file, new Map([['/products', page]]));
  const server = keep(
    await run.workspace.startServer(process.execPath, [builtProgram('peers/bare-http.js'), file]),
  );
  return {
    name: 'node:http: constant page of 200, gzip, no key',
    ...{ origin: server.address, serverPid: server.pid, storePid: null },
    ...{ requests: needs.medref.page.requests, expects: { status: 200, encoding: 'gzip', records: 200 } },
  };
}

async function startPlain({ run, service, needs, keep }: PeerContext): Promise<Contender> {
  const server = keep(await startPeer(run, 'plain.js', { ...service.store, file: run.list }));
  return {
    name: 'the plain way: page of 200, gzip by hapi',
    ...{ origin: server.address, serverPid: server.pid, storePid: service.redisPid },
    ...{ requests: needs.medref.page.requests, expects: { status: 200, encoding: 'gzip', records: 200 } },
  };
}

async function jsonServerContender({ run, service, needs, keep }: PeerContext): Promise<Contender> {
  const server = keep(await startJsonServer(run.workspace, run.list));
  const queries = fullPages(needs.products.length, 200).map((it) => `_${it}&_limit=200`);
  return {
    name: 'json-server: page of 200, gzip, no key',
    ...{ origin: server.address, serverPid: server.pid, storePid: null },
    requests: requestsFor(paths('/products', queries), fieldsOf(service.key, 'gzip')),
    expects: { status: 200, encoding: 'gzip', records: 200 },
  };
}

async function postgresContender({ run, service, needs, keep }: PeerContext): Promise<Contender> {
  const name = 'PostgreSQL behind hapi: page of 200, gzip by hapi';
  const programs = postgresPrograms();
  if (programs === undefined) return { name, leftOut: 'there is no PostgreSQL (initdb, postgres) here' };
  const { child, socketFolder } = await startPostgres(run.workspace, programs);
  keep(child);
  const server = keep(
    await startPeer(run, 'postgres-api.js', { ...service.store, file: run.list, socketFolder }),
  );
  return {
    name,
    ...{ origin: server.address, serverPid: server.pid, storePid: child.pid },
    ...{ requests: needs.medref.page.requests, expects: { status: 200, encoding: 'gzip', records: 200 } },
  };
}

async function nginxContender({ run, needs, keep }: PeerContext): Promise<Contender> {
  const name = 'nginx: static page of 200, gzip, no key';
  const program = onPath('nginx');
  if (program === undefined) return { name, leftOut: 'there is no nginx here' };
  const { origin, requests } = needs.medref.page;
  const files = await writePages(run.workspace, { origin, requests });
  const server = keep(await startNginx(run.workspace, { program, files }));
  return {
    name,
    ...{ origin: server.address, serverPid: server.pid, storePid: null },
    requests: requests.map((request, i) => ({ ...request, path: `/products/${i + 1}.json` })),
    expects: { status: 200, encoding: 'gzip', records: 200 },
  };
}

/** Starts a keyed peer: what it is told comes as one JSON document. */
function startPeer(run: BenchRun, program: string, settings: Record<string, string>) {
  return run.workspace.startServer(process.execPath, [
    builtProgram(`peers/${program}`),
    JSON.stringify(settings),
  ]);
}
