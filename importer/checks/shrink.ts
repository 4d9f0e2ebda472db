// Refuses a version that lacks too large a share of the live ids.

import { type Check, exceeds, percentText } from './check.ts';

export const shrink: Check = {
  name: 'shrink',
  forceable: true,
  refusal: ({ diff: { removed }, live, maxShrinkPercent }) =>
    !live || !exceeds(removed, live.totalCount, maxShrinkPercent)
      ? null
      : `${removed} of the ${live.totalCount} live ids ${removed === 1 ? 'is' : 'are'} absent (${percentText((removed * 100) / live.totalCount, maxShrinkPercent)}); ` +
        `MAX_SHRINK_PERCENT allows ${maxShrinkPercent} %.`,
};
