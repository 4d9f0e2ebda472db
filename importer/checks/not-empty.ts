// Refuses a version without a single valid record; no force passes over it.

import type { Check } from './check.ts';

export const notEmpty: Check = {
  name: 'not-empty',
  forceable: false,
  refusal: ({ staged }) =>
    staged.written > 0
      ? null
      : `Upstream has no valid record: ${staged.read} read, ${staged.rejected} rejected.`,
};
