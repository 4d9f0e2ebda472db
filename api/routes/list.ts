// GET /{collection}: a page of a list.

import type { ServerRoute } from '@hapi/hapi';
import type { Collection } from '../../shared/collections/collection.ts';
import type { ReadModel } from '../../shared/read-model.ts';
import { answer } from '../answer.ts';
import { baseUrlOf } from '../base-url.ts';
import { listEnvelope } from '../envelope.ts';
import { pageLinks, pageMeta, pagingParameters, readPageRequest } from '../paging.ts';
import { pinParameter, readParameters, readPin } from '../parameters.ts';

export function listRoute(
  { name }: Collection,
  readModel: ReadModel,
  baseUrl: string | undefined,
): ServerRoute {
  return {
    method: 'GET',
    path: `/${name}`,
    handler: async (request, h) => {
      const parameters = readParameters(request.raw.req.url ?? '', { ...pinParameter, ...pagingParameters });
      const asked = readPageRequest(parameters);
      const pin = readPin(parameters);
      const from = (asked.page - 1) * asked.perPage;
      const { version, records } = await readModel.range(name, { from, count: asked.perPage }, pin);
      const address = `${baseUrlOf(request, baseUrl)}/${name}`;
      const meta = pageMeta(version.totalCount, asked);
      return answer(request, h, {
        version,
        variant: ['list', address, asked.page, asked.perPage, pin ?? 'live'],
        body: () => listEnvelope(records, pageLinks(address, meta, { version: pin }), meta),
      });
    },
  };
}
