// GET /{collection}/{id}: one record.

import Boom from '@hapi/boom';
import type { ServerRoute } from '@hapi/hapi';
import type { ServedCollection } from '../../shared/collections/define.ts';
import { pin, queryReader, quoted, readId } from '../query.ts';
import type { ReadModel } from '../read/read-model.ts';
import { plainBody } from '../reply/body.ts';
import { singleEnvelope } from '../reply/envelope.ts';
import { sendReply, validatorsOf } from '../reply/reply.ts';

export function recordRoute(served: ServedCollection, readModel: ReadModel): ServerRoute {
  const { name } = served.collection;
  const readQuery = queryReader(pin);
  return {
    method: 'GET',
    path: `/${name}/{id}`,
    handler: async (request, h) => {
      const id = readId(request.params['id'] as string);
      const { values } = readQuery(request.raw.req.url ?? '');
      const { version, record } = await readModel.byId(await readModel.target(served, values.version), id);
      if (!record) throw Boom.notFound(`No record of ${name} has the id ${quoted(id)}.`);
      return sendReply(request, h, {
        version,
        validators: validatorsOf(version, ['record', name, id]),
        body: () => plainBody(singleEnvelope(record)),
      });
    },
  };
}
