// How long a client waits in tests: its seconds are short, its patience with silence is not.

import type { Timing } from '../../client/connection.ts';

export const quickTiming: Timing = { secondMs: 5, silenceMs: 20_000, tries: 5 };
