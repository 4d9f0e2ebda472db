// In: how many records an import has read. Out: a line on a terminal that keeps up; nothing anywhere else.

import { count, counted } from './commands/output.ts';
import type { CommandContext } from './surroundings.ts';

/** Shows progress on a terminal. */
export interface Progress {
  show(read: number): void;
  /** Takes the line away again. */
  clear(): void;
}

/** Progress of one collection's import on a stream, where that is a terminal. */
export function createProgress(collection: string, stream: CommandContext['stderr']): Progress {
  if (!stream.isTTY) return { show: () => undefined, clear: () => undefined };
  const start = performance.now();
  let shownAt = start;
  return {
    show: (read) => {
      const now = performance.now();
      if (now - shownAt < 100) return;
      shownAt = now;
      const rate = Math.round(read / ((now - start) / 1000));
      const line = `${collection}: ${counted(read, 'record')}, ${count(rate)}/s`;
      // A line that is longer would go on in the next one, which is not taken away again.
      stream.write(`\r\x1b[K${line.slice(0, stream.columns || line.length)}`);
    },
    clear: () => {
      if (shownAt > start) stream.write('\r\x1b[K');
    },
  };
}
