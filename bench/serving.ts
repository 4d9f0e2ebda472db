// The row group `serving`: the real list, medref against what else could serve it. In: a run. Out: its rows.

import type { Product } from '../shared/collections/products.ts';
import type { WireAnswer } from './answers.ts';
import type { BenchRun } from './bench-run.ts';
import { type Asked, type Contender, measureRows, type Row } from './contenders.ts';
import { onPath } from './installed.ts';
import { type StartedLimit, startLimit, startPeer, typicalAnswers } from './limit-contenders.ts';
import { createKey } from './medref.ts';
import { type MedrefContenders, medrefContenders, paths } from './medref-contenders.ts';
import { writeConstants } from './peers/constant-answers.ts';
import { startJsonServer } from './peers/json-server.ts';
import { startNginx, writePages } from './peers/nginx.ts';
import { readProducts } from './peers/paged-list.ts';
import { postgresPrograms, startPostgres } from './peers/postgres.ts';
import { builtProgram } from './project.ts';
import { fieldsOf, fullPages, requestsFor } from './requests.ts';
import type { GroupResult } from './results.ts';
import { type Service, startService } from './service.ts';

/** Measures the rows of serving. */
export async function measureServing(run: BenchRun): Promise<GroupResult> {
  const products = readProducts(run.list);
  const service = await startService(run, run.list);
  const medref = await medrefContenders(service, products);
  const ratedPage = await toRatedKey(run, service, medref.page);
  const peers = await startPeers(run, service, { medref, products });
  const result = await measureRows(run, rows(medref, { ...peers, ratedPage }));
  for (const stop of peers.stops.reverse()) await stop();
  await service.stop();
  return result;
}

/** The table of contents: who is measured against whom, and what is asked of medref. */
function rows(medref: MedrefContenders, peers: Peers & { readonly ratedPage: Asked }): Row[] {
  const { limit } = peers;
  return [
    { subject: medref.page, against: limit.page, target: { atLeast: 0.95 } },
    { subject: peers.ratedPage, against: medref.page, target: { atLeast: 0.9 } },
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

/** The same pages, asked for with a key whose requests are counted: more than any process answers, so none is refused. */
async function toRatedKey(run: BenchRun, service: Service, page: Asked): Promise<Asked> {
  const headers = fieldsOf(await createKey(run.workspace, service.store, '1000000/s'), 'gzip');
  const requests = page.requests.map((it) => ({ ...it, headers }));
  return { ...page, name: `${page.name}, to a key with a rate`, requests };
}

// ---- peers

interface Peers {
  readonly limit: StartedLimit['limit'];
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

async function startPeers(run: BenchRun, service: Service, needs: PeerNeeds): Promise<Peers> {
  run.say('starting the peers');
  const stops: (() => Promise<void>)[] = [];
  const keep = <C extends { stop(): Promise<void> }>(child: C): C => {
    stops.push(() => child.stop());
    return child;
  };
  const context: PeerContext = { run, service, needs, keep };
  const samples = await typicalAnswers(needs.medref);
  const { limit } = keep(await startLimit(run, { service, medref: needs.medref, samples }));
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
