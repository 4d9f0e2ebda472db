// GET /{collection}/changes?since=N: what changed since version N, by id.

import Boom from '@hapi/boom';
import type { ServerRoute } from '@hapi/hapi';
import type { ServedCollection } from '../../shared/collections/collection.ts';
import type { Version } from '../../shared/versions.ts';
import { answer, isHeld, notModified, validatorsOf } from '../answers/answer.ts';
import { listBody } from '../answers/body.ts';
import { digestFields } from '../answers/digests.ts';
import { changeElement, listEnd, listStart } from '../answers/envelope.ts';
import { pageLinks, pageMeta } from '../answers/page-links.ts';
import type { ReadModel } from '../reads/read-model.ts';
import { baseUrlOf } from '../requests/base-url.ts';
import { readPageRequest } from '../requests/paging.ts';
import { countTakes, missingParameter, readCount, readParameters, readPin } from '../requests/parameters.ts';
import { changeParameters } from '../requests/route-parameters.ts';

export function changesRoute(
  served: ServedCollection,
  readModel: ReadModel,
  baseUrl: string | undefined,
): ServerRoute {
  const { name } = served.collection;
  return {
    method: 'GET',
    path: `/${name}/changes`,
    handler: async (request, h) => {
      const parameters = readParameters(request.raw.req.url ?? '', changeParameters);
      const since = readCount(parameters, 'since', null);
      if (since === null) throw missingParameter('since', countTakes);
      const asked = readPageRequest(parameters);
      const pin = readPin(parameters);
      const span = { since, from: (asked.page - 1) * asked.perPage, count: asked.perPage };
      const target = await readModel.target(served, pin);
      if (pin !== undefined && since > pin)
        throw Boom.badRequest(
          `The version since=${since} is later than version=${pin}, where the changes are to end.`,
        );
      const address = `${baseUrlOf(request, baseUrl)}/${name}/changes`;
      const validatorsAt = (version: Version) =>
        validatorsOf(version, ['changes', address, since, version.version, asked.page, asked.perPage]);
      const found = await readModel.changes(target, span, (version) =>
        isHeld(request, validatorsAt(version)),
      );
      if ('held' in found) {
        const { held } = found;
        return notModified(request, h, {
          ...{ version: held, validators: validatorsAt(held), fields: digestFields(held) },
        });
      }
      const { version, totalCount, changes } = found;
      const meta = pageMeta(totalCount, asked);
      // Links end at the version this answer ends at, so that a walk along them sees one list.
      const links = pageLinks(address, meta, { since, version: version.version });
      return answer(request, h, {
        version,
        validators: validatorsAt(version),
        fields: digestFields(version),
        body: () => listBody(listStart, { records: changes.map(changeElement) }, listEnd(links, meta)),
      });
    },
  };
}
