// The times of a client in tests: its seconds are short, but it accepts long silence.

import type { Timing } from '../../client/connection.ts';

export const quickTiming: Timing = { secondMs: 5, silenceMs: 20_000, tries: 5 };
