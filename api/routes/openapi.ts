// GET /openapi.json: the API as an OpenAPI document; without a key.

import type { ServerRoute } from '@hapi/hapi';
import type { ServedCollection } from '../../shared/collections/collection.ts';
import { fixedAnswer } from '../answers/fixed-answer.ts';
import { openApiText } from '../openapi/openapi-document.ts';

export function openApiRoute(served: readonly ServedCollection[]): ServerRoute {
  const bytes = Buffer.from(openApiText(served.map(({ collection }) => collection)));
  return {
    method: 'GET',
    path: '/openapi.json',
    options: { auth: false },
    handler: fixedAnswer({ type: 'application/json', bytes }),
  };
}
