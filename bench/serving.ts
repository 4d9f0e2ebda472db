// The groups `serving`, `share` and `workers`: requests by wrk, with the CPU time of each.

import { readFileSync } from 'node:fs';
import { writeFile } from 'node:fs/promises';
import { type LoadRequest, type LoadSample, loadOn } from './load.ts';
import { inRounds, median, type Run, spread, type Table } from './measure.ts';
import { type Service, startService } from './medref.ts';
import type { Constant } from './peers/constant.ts';
import { builtProgram, nodeOptions, realProducts } from './project.ts';
import { type Kind, kindNames, kinds, pagePaths, readProducts, requestsOf } from './requests.ts';

/** A server under load. */
interface Side {
  readonly origin: string;
  readonly pid: number;
  readonly redisPid: number | null;
  requests(kind: Kind): readonly LoadRequest[];
}

/** Measures every kind of request against the plain way to serve a page. */
export async function measureServing(run: Run): Promise<Table[]> {
  const { side, service } = await startMedref(run);
  const program = [...nodeOptions, builtProgram('bench/peers/plain.js'), service.redisUrl, realProducts];
  const plain = await run.workspace.startServer(process.execPath, program);
  const pages = side.requests('page');
  const sides: Record<string, () => Promise<LoadSample>> = {
    'the plain way: page of 200': await load(
      run,
      { origin: plain.address, pid: plain.pid, redisPid: service.redisPid, requests: () => pages },
      'page',
    ),
  };
  for (const kind of kinds) sides[`medref: ${kindNames[kind]}`] = await load(run, side, kind);
  const samples = await inRounds(run.rounds, sides);
  await plain.stop();
  await service.stop();
  return [
    {
      text: 'Requests per second of one process, and the CPU time of a request in the server and in Redis, in µs.',
      head: ['Request', 'Requests/s', 'CPU, server', 'CPU, Redis'],
      rows: Object.entries(samples).map(([name, its]) => [
        name,
        spread(its.map((it) => it.requestsPerSecond)),
        spread(its.map((it) => it.serverMicros)),
        spread(its.map((it) => it.storeMicros ?? 0)),
      ]),
    },
  ];
}

/** Measures the CPU time of a request as a multiple of a constant response with the same bytes. */
export async function measureShare(run: Run): Promise<Table[]> {
  const { side, service } = await startMedref(run);
  const constant = await startConstant(run, side, [service.key, service.ratedKey]);
  const asked = [
    'page',
    'record',
    'page10',
    'page50',
    'search',
    'words',
    'identity',
    'ids',
    'rated',
  ] as const;
  const rows: string[][] = [];
  for (const kind of asked) {
    const sides = { medref: await load(run, side, kind), constant: await load(run, constant, kind) };
    const samples = await inRounds(run.rounds, sides);
    const ratios = samples.medref.map(
      (it, n) => it.serverMicros / (samples.constant[n] as LoadSample).serverMicros,
    );
    const micros = (its: readonly LoadSample[]) => median(its.map((it) => it.serverMicros)).toFixed(0);
    rows.push([kindNames[kind], spread(ratios), micros(samples.medref), micros(samples.constant)]);
    run.say(`share: ${kindNames[kind]}: ${spread(ratios)}`);
  }
  await constant.stop();
  await service.stop();
  return [
    {
      text: 'CPU time of the server for a request, as a multiple of the baseline: hapi with a lookup of the key and a constant response of the same bytes. Redis is not counted.',
      head: ['Request', 'Times the baseline', 'medref, µs', 'Baseline, µs'],
      rows,
    },
  ];
}

/** Measures two workers against one process. */
export async function measureWorkers(run: Run): Promise<Table[]> {
  const one = await startMedref(run);
  const two = await startMedref(run, { WORKERS: '2' });
  const sides = { one: await load(run, one.side, 'page'), two: await load(run, two.side, 'page') };
  const samples = await inRounds(run.rounds, sides);
  await one.service.stop();
  await two.service.stop();
  const rows = (['one', 'two'] as const).map((name) => [
    name,
    spread(samples[name].map((it) => it.requestsPerSecond)),
    spread(samples[name].map((it) => it.serverMicros)),
  ]);
  const text = 'Pages of 200, gzip, by `WORKERS`. The load generator needs a core of its own.';
  return [{ text, head: ['Processes', 'Requests/s', 'CPU, µs a request'], rows }];
}

async function startMedref(run: Run, settings = {}): Promise<{ side: Side; service: Service }> {
  const service = await startService(run.workspace, realProducts, { settings });
  const products = readProducts(realProducts);
  const etags = new Map<string, string>();
  for (const path of pagePaths(products.length, 200)) {
    const headers = { Authorization: `Bearer ${service.key}`, 'Accept-Encoding': 'gzip' };
    const response = await fetch(`${service.origin}${path}`, { headers });
    await response.arrayBuffer();
    etags.set(path, response.headers.get('etag') ?? '');
  }
  const requests = requestsOf(products, service, etags);
  const { origin, pid, redisPid } = service;
  return { service, side: { origin, pid, redisPid, requests: (kind) => requests[kind] } };
}

/** Starts the baseline with responses of medium size from medref. */
async function startConstant(
  run: Run,
  medref: Side,
  keys: readonly string[],
): Promise<Side & { stop(): Promise<void> }> {
  const constants: Record<string, Constant> = {};
  for (const kind of kinds) constants[kind] = await typicalResponse(run, medref, kind);
  const file = run.workspace.path('constants.json');
  await writeFile(file, JSON.stringify(constants));
  const program = [...nodeOptions, builtProgram('bench/peers/constant.js'), file, ...keys];
  const server = await run.workspace.startServer(process.execPath, program);
  return {
    origin: server.address,
    pid: server.pid,
    redisPid: null,
    requests: (kind) =>
      medref
        .requests(kind)
        .map(({ path, headers }) => ({ path: path.replace('/products', `/${kind}`), headers })),
    stop: () => server.stop(),
  };
}

async function typicalResponse(
  { workspace }: Run,
  { origin, requests }: Side,
  kind: Kind,
): Promise<Constant> {
  const all = requests(kind);
  const some = Array.from({ length: 15 }, (_, n) => all[Math.floor((n * all.length) / 15)] as LoadRequest);
  const found: Constant[] = [];
  for (const { path, headers } of some) {
    const [head, body] = [workspace.path('head'), workspace.path('body')];
    const fields = Object.entries(headers).flatMap(([name, value]) => ['-H', `${name}: ${value}`]);
    await workspace.run('curl', ['-s', '-D', head, '-o', body, ...fields, `${origin}${path}`]);
    found.push(readResponse(readFileSync(head, 'latin1'), readBody(body)));
  }
  return found.sort((a, b) => a.body.length - b.body.length)[7] as Constant;
}

/** curl writes no file for an empty body. */
function readBody(file: string): Buffer {
  try {
    return readFileSync(file);
  } catch {
    return Buffer.alloc(0);
  }
}

function readResponse(head: string, body: Buffer): Constant {
  const [line = '', ...fields] = head.trim().split('\r\n');
  const ofConnection = /^(content-length|connection|date|keep-alive|transfer-encoding)$/i;
  const headers = fields
    .map((field): [string, string] => [
      field.slice(0, field.indexOf(':')),
      field.slice(field.indexOf(':') + 2),
    ])
    .filter(([name]) => !ofConnection.test(name));
  return {
    status: Number(line.split(' ')[1]),
    headers: Object.fromEntries(headers),
    body: body.toString('base64'),
  };
}

function load(
  run: Run,
  { origin, pid, redisPid, requests }: Side,
  kind: Kind,
): Promise<() => Promise<LoadSample>> {
  const target = { origin, requests: requests(kind), serverPid: pid, storePid: redisPid };
  return loadOn(
    run.workspace,
    target,
    run.quick ? { warmUpSeconds: 0, seconds: 1 } : { warmUpSeconds: 1, seconds: 3 },
  );
}
