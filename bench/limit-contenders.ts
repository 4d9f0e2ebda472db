// The limit: hapi with our authentication and answers that are constant, the same bytes as medref's own, asked the same.

import { askSome, typicalOf, type WireAnswer } from './answers.ts';
import type { BenchRun } from './bench-run.ts';
import type { Asked } from './contenders.ts';
import type { MedrefContenders } from './medref-contenders.ts';
import { writeConstants } from './peers/constant-answers.ts';
import { builtProgram } from './project.ts';
import type { Service } from './service.ts';

/** What it answers, a constant for each. */
export type LimitName =
  | 'page'
  | 'identityPage'
  | 'page50'
  | 'page30'
  | 'page10'
  | 'nameSearch'
  | 'record'
  | 'notModified';

/** The limit as one process. */
export interface StartedLimit {
  readonly limit: Readonly<Record<LimitName, Asked>>;
  stop(): Promise<void>;
}

interface LimitNeeds {
  readonly service: Service;
  readonly medref: MedrefContenders;
  readonly samples: Record<LimitName, WireAnswer>;
}

/** The answers of medref that the constants are: of middling size among some, with all of its headers. */
export async function typicalAnswers(medref: MedrefContenders): Promise<Record<LimitName, WireAnswer>> {
  const typical = async ({ origin, requests }: Asked) => typicalOf(await askSome(origin, requests));
  return {
    page: await typical(medref.page),
    identityPage: await typical(medref.identityPage),
    page50: await typical(medref.page50),
    page30: await typical(medref.page30),
    page10: await typical(medref.page10),
    nameSearch: await typical(medref.nameSearch),
    record: await typical(medref.record),
    notModified: await typical(medref.notModified),
  };
}

/** Starts it. It is asked with the very query strings and header fields that medref is asked with. */
export async function startLimit(
  run: BenchRun,
  { service, medref, samples }: LimitNeeds,
): Promise<StartedLimit> {
  const file = run.workspace.path('limit.json');
  const routes: Record<LimitName, string> = {
    page: '/page',
    identityPage: '/identity-page',
    page50: '/page-50',
    page30: '/page-30',
    page10: '/page-10',
    nameSearch: '/name-search',
    record: '/record/{id}',
    notModified: '/not-modified',
  };
  const names = Object.keys(routes) as LimitName[];
  await writeConstants(file, new Map(names.map((name) => [routes[name], samples[name]])));
  const server = await startPeer(run, 'limit.js', { ...service.store, file });
  const contender = (name: LimitName): Asked => {
    const { name: whose, requests, expects } = medref[name];
    const prefix = routes[name].replace('/{id}', '');
    return {
      name: whose.replace('medref: ', 'the limit: '),
      ...{ origin: server.address, serverPid: server.pid, storePid: service.redisPid },
      requests: requests.map((it) => ({ ...it, path: it.path.replace('/products', prefix) })),
      expects: { status: expects.status, encoding: expects.encoding },
    };
  };
  const contenders = Object.fromEntries(names.map((name) => [name, contender(name)]));
  return { limit: contenders as Record<LimitName, Asked>, stop: () => server.stop() };
}

/** Starts a keyed peer: what it is told comes as one JSON document. */
export function startPeer(run: BenchRun, program: string, settings: Record<string, string>) {
  return run.workspace.startServer(process.execPath, [
    builtProgram(`peers/${program}`),
    JSON.stringify(settings),
  ]);
}
