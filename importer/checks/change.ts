// Refuses a version in which too large a share of the ids that stay have another record.

import { type Check, exceeds, percentText } from './check.ts';

export const change: Check = {
  name: 'change',
  forceable: true,
  refusal: ({ diff: { changed, removed }, live, maxChangePercent }) => {
    const staying = (live?.totalCount ?? 0) - removed;
    if (!exceeds(changed, staying, maxChangePercent)) return null;
    return (
      `${changed} of the ${staying} live ids that stay ${changed === 1 ? 'has' : 'have'} another record ` +
      `(${percentText((changed * 100) / staying, maxChangePercent)}); MAX_CHANGE_PERCENT allows ${maxChangePercent} %.`
    );
  },
};
