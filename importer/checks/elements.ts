// Refuses a version in which the elements of an array, such as the barcodes of all products, became too few.

import { type Check, exceeds, percentText } from './check.ts';

export const elements: Check = {
  name: 'elements',
  forceable: true,
  refusal: ({ staged, live, maxShrinkPercent }) => {
    const fallen = Object.entries(live?.profile.elements ?? {}).flatMap(([path, before]) => {
      const now = staged.profile.elements[path] ?? 0;
      const lost = before - now;
      if (!exceeds(lost, before, maxShrinkPercent)) return [];
      return [
        `${path} fell from ${before} elements in all to ${now} (by ${percentText((lost * 100) / before, maxShrinkPercent)})`,
      ];
    });
    if (fallen.length === 0) return null;
    return `${fallen.join('; ')}; MAX_SHRINK_PERCENT allows ${maxShrinkPercent} %.`;
  },
};
