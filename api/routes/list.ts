// GET /{collection}: a page of a list, of what a search finds in it, or of its records with some ids.

import type { Request, ResponseToolkit, ServerRoute } from '@hapi/hapi';
import type { Logger } from 'pino';
import type { ServedCollection } from '../../shared/collections/define.ts';
import { baseUrlOf } from '../proxy.ts';
import {
  lineParameters,
  listParameters,
  otherParameters,
  pagingParameters,
  readIds,
  readPageRequest,
  readParameters,
  readPin,
  readSearch,
} from '../query.ts';
import type { ReadModel } from '../read/read-model.ts';
import { listBody } from '../reply/body.ts';
import { digestFields, listEnd, listStart, pageLinks, pageMeta } from '../reply/envelope.ts';
import { answerLines, prefersNdjson } from '../reply/ndjson.ts';
import { answer, isHeld, notModified, validatorsOf } from '../reply/reply.ts';

export function listRoute(
  served: ServedCollection,
  readModel: ReadModel,
  { baseUrl, logger }: { readonly baseUrl: string | undefined; readonly logger: Logger },
): ServerRoute {
  const { name } = served.collection;
  const takes = listParameters(served.collection);
  const streamLines = async (request: Request, h: ResponseToolkit) => {
    const parameters = readParameters(request.raw.req.url ?? '', lineParameters);
    const target = await readModel.target(served, readPin(parameters));
    const variant = ['ndjson'];
    const fields = digestFields(target.version);
    const held = { version: target.version, validators: validatorsOf(target.version, variant), fields };
    if (isHeld(request, held.validators)) return notModified(request, h, held);
    const { version, lines } = await readModel.lines(target);
    const validators = validatorsOf(version, variant);
    return answerLines(request, h, { version, validators, lines, logger });
  };
  return {
    method: 'GET',
    path: `/${name}`,
    handler: async (request, h) => {
      if (prefersNdjson(request)) return streamLines(request, h);
      const parameters = readParameters(request.raw.req.url ?? '', takes);
      const asked = readPageRequest(parameters);
      const ids = readIds(served.collection, parameters);
      const search = readSearch(served.collection, parameters);
      const pin = readPin(parameters);
      const target = await readModel.target(served, pin);
      const address = `${baseUrlOf(request, baseUrl)}/${name}`;
      const others = otherParameters(parameters, pagingParameters);
      if (pin) others['version'] = pin;
      const variant = ['list', address, asked.page, asked.perPage, ...Object.entries(others).flat()];
      const validators = validatorsOf(target.version, variant);
      if (isHeld(request, validators))
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
      return answer(request, h, {
        version,
        // Of another version than a moment ago, where that one has vanished meanwhile.
        validators: version === target.version ? validators : validatorsOf(version, variant),
        body: () => listBody(listStart, part, listEnd(pageLinks(address, meta, others), meta)),
      });
    },
  };
}
