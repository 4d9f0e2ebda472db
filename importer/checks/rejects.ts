// Refuses a version when too large a share of what was read had to be rejected.

import { recordCount, wasOrWere } from '../parse/record-count.ts';
import { type Check, exceeds, percentText } from './check.ts';

export const rejects: Check = {
  name: 'rejects',
  forceable: true,
  refusal: ({ staged: { read, rejected }, maxRejectPercent }) =>
    !exceeds(rejected, read, maxRejectPercent)
      ? null
      : `${rejected} of the ${recordCount(read)} read ${wasOrWere(rejected)} rejected (${percentText((rejected * 100) / read, maxRejectPercent)}); ` +
        `MAX_REJECT_PERCENT allows ${maxRejectPercent} %.`,
};
