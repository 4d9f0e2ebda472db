// Refuses a version when too large a share of what was read had to be rejected.

import { type Check, exceeds, percentText } from './check.ts';

export const rejects: Check = {
  name: 'rejects',
  forceable: true,
  refusal: ({ staged: { read, rejected }, maxRejectPercent }) =>
    !exceeds(rejected, read, maxRejectPercent)
      ? null
      : `${rejected} of the ${read} records read were rejected (${percentText(rejected, read)}); ` +
        `MAX_REJECT_PERCENT allows ${maxRejectPercent} %.`,
};
