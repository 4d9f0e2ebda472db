// GET /{collection}: a page of the list, of search results, or of the records with given ids.

import type { Request, ResponseToolkit, ServerRoute } from '@hapi/hapi';
import type { Logger } from 'pino';
import type { ServedCollection } from '../../shared/collections/define.ts';
import type { ClientRecord } from '../client-versions.ts';
import { baseUrlOf } from '../proxy.ts';
import {
  otherListParameters,
  pageOf,
  paging,
  pin,
  queryReader,
  requireNoSearch,
  searchOf,
  searchParameters,
} from '../query.ts';
import type { ReadModel } from '../read/read-model.ts';
import { listBody } from '../reply/body.ts';
import { digestFields, listEnd, listStart, pageLinks, pageMeta } from '../reply/envelope.ts';
import { prefersNdjson, sendLines } from '../reply/ndjson.ts';
import { isFresh, notModified, sendReply, validatorsOf } from '../reply/reply.ts';

export function listRoute(
  served: ServedCollection,
  readModel: ReadModel,
  {
    baseUrl,
    logger,
    clientVersions,
  }: {
    readonly baseUrl: string | undefined;
    readonly logger: Logger;
    readonly clientVersions: ClientRecord;
  },
): ServerRoute {
  const { name } = served.collection;
  const parameters = { ...searchParameters(served.collection), ...otherListParameters };
  const readQuery = queryReader(parameters);
  const readLinesQuery = queryReader(pin, 'NDJSON');
  const inLinks = Object.keys(parameters).filter((it) => !Object.hasOwn(paging, it));
  const streamLines = async (request: Request, h: ResponseToolkit) => {
    const { values } = readLinesQuery(request.raw.req.url ?? '');
    const target = await readModel.target(served, values.version);
    const variant = ['ndjson'];
    const fields = digestFields(target.version);
    const fresh = { version: target.version, validators: validatorsOf(target.version, variant), fields };
    if (isFresh(request, fresh.validators)) {
      clientVersions.serving(request, name, target.version.version);
      return notModified(request, h, fresh);
    }
    const { version, lines } = await readModel.lines(target);
    const validators = validatorsOf(version, variant);
    clientVersions.serving(request, name, version.version);
    return sendLines(request, h, { version, validators, lines, logger });
  };
  return {
    method: 'GET',
    path: `/${name}`,
    handler: async (request, h) => {
      if (prefersNdjson(request)) return streamLines(request, h);
      const { values, given } = readQuery(request.raw.req.url ?? '');
      const { ids, version: pinned } = values;
      const search = searchOf(served.collection, values);
      if (ids && search) requireNoSearch(served.collection, values);
      const asked = pageOf(values);
      const target = await readModel.target(served, pinned);
      const address = `${baseUrlOf(request, baseUrl)}/${name}`;
      const others: Record<string, string | number> = {};
      for (const it of inLinks) if (given[it] !== undefined) others[it] = given[it];
      if (pinned) others['version'] = pinned;
      const variant = ['list', address, asked.page, asked.perPage, ...Object.entries(others).flat()];
      const validators = validatorsOf(target.version, variant);
      if (isFresh(request, validators))
        return notModified(request, h, { version: target.version, validators });
      const span = { from: (asked.page - 1) * asked.perPage, count: asked.perPage };
      const found = await (ids
        ? readModel.byIds(target, ids, span)
        : search
          ? readModel.search(target, search, span)
          : readModel.list(target, span));
      const { version } = found;
      const totalCount = 'totalCount' in found ? found.totalCount : version.totalCount;
      const part = 'records' in found ? found : found.part;
      const meta = pageMeta(totalCount, asked);
      return sendReply(request, h, {
        version,
        // The version can differ from the first one if that one expired meanwhile.
        validators: version === target.version ? validators : validatorsOf(version, variant),
        body: () => listBody(listStart, part, listEnd(pageLinks(address, meta, others), meta)),
      });
    },
  };
}
