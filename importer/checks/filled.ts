// Refuses a version in which a member that nearly every live record had filled is empty in too many.

import { type Check, exceeds, percentText } from './check.ts';

/** A member filled in at least this share of the live records is expected to stay so. */
const filledPercent = 95;

export const filled: Check = {
  name: 'filled',
  forceable: true,
  refusal: ({ staged, live, maxShrinkPercent }) => {
    if (!live || staged.written === 0) return null;
    const fallen = Object.entries(live.profile.filled).flatMap(([path, count]) => {
      const before = (count * 100) / live.totalCount;
      const now = ((staged.profile.filled[path] ?? 0) * 100) / staged.written;
      if (before < filledPercent || !exceeds(before - now, 100, maxShrinkPercent)) return [];
      return [
        `${path} was filled in ${percentText(before, -1)} of the live records and is in ${percentText(now, -1)}`,
      ];
    });
    if (fallen.length === 0) return null;
    return `${fallen.join('; ')}; MAX_SHRINK_PERCENT allows to fall by ${maxShrinkPercent} points.`;
  },
};
