// The row group `scale`: whether the far end of a list costs more than its beginning. In: a run. Out: its rows.

import { ask } from './answers.ts';
import type { BenchRun } from './bench-run.ts';
import { type Contender, measureRows, type Row } from './contenders.ts';
import { writeGeneratedList } from './generated-list.ts';
import { edges, fieldsOf, fullPages, requestsFor } from './requests.ts';
import type { GroupResult } from './results.ts';
import { type Service, startService } from './service.ts';
import type { Target } from './statistics.ts';

const target: Target = { atLeast: 0.95 };

/** Measures pages at the ends of a large generated list and of the real one. */
export async function measureScale(run: BenchRun): Promise<GroupResult> {
  const { scaleRecords } = run.sizes;
  run.say(`generating and importing ${scaleRecords} products`);
  const list = await writeGeneratedList(run.workspace, scaleRecords);
  const generated = await startService(run, list.path);
  await list.remove();
  const real = await startService(run, run.list);
  const size = `${scaleRecords.toLocaleString('en')} generated`;
  const result = await measureRows(run, [
    await endsOf(generated, { what: size, query: '', target }),
    // Invented names begin with B often enough for thousands of pages.
    await endsOf(generated, { what: `${size}, name=b`, query: 'name=b&', target }),
    await endsOf(real, { what: 'the real list, name=a', query: 'name=a&', target: null }),
  ]);
  await generated.stop();
  await real.stop();
  return result;
}

/** The last pages of a list against its first ones. */
async function endsOf(
  service: Service,
  { what, query, target }: { what: string; query: string; target: Target | null },
): Promise<Row> {
  const headers = fieldsOf(service.key, 'gzip');
  const total = await totalCount(service, query);
  const { first, last } = edges(fullPages(total, 200).map((page) => `/products?${query}${page}`));
  const contender = (end: string, paths: readonly string[]): Contender => ({
    name: `medref: ${end} pages of ${what}`,
    ...{ origin: service.origin, serverPid: service.pid, storePid: service.redisPid, isMedref: true },
    ...{ requests: requestsFor(paths, headers), expects: { status: 200, encoding: 'gzip', records: 200 } },
  });
  return { subject: contender('last', last), against: contender('first', first), target };
}

/** How many records there are; one page, where that cannot be asked. */
async function totalCount({ origin, key }: Service, query: string): Promise<number> {
  const headers = fieldsOf(key, 'identity');
  const { status, body } = await ask(origin, { path: `/products?${query}per-page=1`, headers });
  if (status !== 200) return 1;
  return (JSON.parse(body.toString()) as { _meta: { totalCount: number } })._meta.totalCount;
}
