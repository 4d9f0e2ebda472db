// GET /{collection}/versions: the kept versions, newest first.

import type { ServerRoute } from '@hapi/hapi';
import type { ServedCollection } from '../../shared/collections/define.ts';
import type { Version } from '../../shared/store/versions.ts';
import { baseUrlOf } from '../proxy.ts';
import { pageOf, paging, queryReader } from '../query.ts';
import type { ReadModel } from '../read/read-model.ts';
import { listBody } from '../reply/body.ts';
import { digestFields, digestsOf, listEnd, listStart, pageLinks, pageMeta } from '../reply/envelope.ts';
import { sendReply, validatorsOf } from '../reply/reply.ts';

export function versionsRoute(
  served: ServedCollection,
  readModel: ReadModel,
  baseUrl: string | undefined,
): ServerRoute {
  const { name } = served.collection;
  const readQuery = queryReader(paging);
  return {
    method: 'GET',
    path: `/${name}/versions`,
    handler: async (request, h) => {
      const asked = pageOf(readQuery(request.raw.req.url ?? '').values);
      const { version: live } = await readModel.target(served, undefined);
      const kept = await readModel.keptVersions(served);
      const address = `${baseUrlOf(request, baseUrl)}/${name}/versions`;
      // Versions can be published and deleted meanwhile. This is one consistent view: its newest version is live.
      const [latest = live] = kept;
      const meta = pageMeta(kept.length, asked);
      const from = (asked.page - 1) * asked.perPage;
      const page = kept.slice(from, from + asked.perPage);
      const records = page.map((version) => element(version, version === latest));
      const variant = ['versions', address, asked.page, asked.perPage, kept.length, ...records.map(String)];
      const validators = validatorsOf(latest, variant);
      return sendReply(request, h, {
        version: latest,
        // Versions are also deleted without a publication, so the date alone does not identify the list.
        validators: { ...validators, isExactByDate: false },
        fields: digestFields(latest),
        body: () => listBody(listStart, { records }, listEnd(pageLinks(address, meta, {}), meta)),
      });
    },
  };
}

function element(version: Version, live: boolean): Buffer {
  const { version: number, publishedAt, totalCount } = version;
  return Buffer.from(
    JSON.stringify({ version: number, publishedAt, totalCount, live, digest: digestsOf(version) }),
  );
}
