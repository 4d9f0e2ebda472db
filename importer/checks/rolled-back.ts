// Refuses a content that an operator has rolled back from, until it is forced.

import type { Check } from './check.ts';

export const rolledBack: Check = {
  name: 'rolled-back',
  forceable: true,
  refusal: ({ undone }) =>
    undone
      ? 'Upstream still has, or has again, the very content that was rolled back from; --force publishes it.'
      : null,
};
