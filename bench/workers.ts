// The row group `workers`: what a second process behind the same port adds, where the load generator takes its part of the
// same cores. In: a run. Out: its rows.

import type { BenchRun } from './bench-run.ts';
import { type Contender, type Expectation, measureRows } from './contenders.ts';
import type { LoadTarget } from './load.ts';
import { serve } from './medref.ts';
import { readProducts } from './peers/paged-list.ts';
import { fieldsOf, fullPages, requestsFor } from './requests.ts';
import type { GroupResult } from './results.ts';
import { startService } from './service.ts';

/** Measures two workers against one process, on the same Redis. */
export async function measureWorkers(run: BenchRun): Promise<GroupResult> {
  const service = await startService(run, run.list);
  const two = await serve(run.workspace, service.store, { WORKERS: '2' });
  const products = readProducts(run.list);
  const fields = fieldsOf(service.key, 'gzip');
  const pages = requestsFor(
    fullPages(products.length, 200).map((query) => `/products?${query}`),
    fields,
  );
  const records = requestsFor(
    products.map((it) => `/products/${it.product.id}`),
    fields,
  );
  const row = (what: string, asked: Pick<LoadTarget, 'requests'> & { readonly expects: Expectation }) => {
    const contender = (name: string, origin: string, serverPid: number): Contender => ({
      name: `medref: ${what}${name}`,
      ...{ origin, serverPid, storePid: service.redisPid, isMedref: true, ...asked },
    });
    return {
      subject: contender(', by 2 workers', two.address, two.pid),
      against: contender(', by 1 process', service.origin, service.pid),
      target: null,
    };
  };
  const result = await measureRows(run, [
    row('page of 200, gzip', { requests: pages, expects: { status: 200, encoding: 'gzip', records: 200 } }),
    row('one record by its id', {
      requests: records,
      expects: { status: 200, encoding: 'either', records: 'some' },
    }),
  ]);
  await two.stop();
  await service.stop();
  return result;
}
