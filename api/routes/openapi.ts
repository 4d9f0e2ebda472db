// GET /openapi.json: the API as an OpenAPI document; without a key.

import type { ServerRoute } from '@hapi/hapi';
import type { ServedCollection } from '../../shared/collections/define.ts';
import { openApiText } from '../openapi/document.ts';
import { fixedAnswer } from '../reply/fixed-answer.ts';

export function openApiRoute(served: readonly ServedCollection[]): ServerRoute {
  // Made for the first who asks: it takes a third of what the start of an API does, and few ask.
  let answer: ReturnType<typeof fixedAnswer> | undefined;
  const made = () => {
    const text = openApiText(served.map(({ collection }) => collection));
    return fixedAnswer({ type: 'application/json', bytes: Buffer.from(text) });
  };
  return {
    method: 'GET',
    path: '/openapi.json',
    options: { auth: false },
    handler: (request, h) => {
      answer ??= made();
      return answer(request, h);
    },
  };
}
