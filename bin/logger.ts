// Structured logs, as JSON lines on stderr; stdout belongs to results.

import { type Logger, pino } from 'pino';
import { printableJson } from './escapes.ts';

export type { Logger } from 'pino';

/** The logger of one command. */
export function createLogger(level: string): Logger {
  const stderr = pino.destination({ fd: 2, sync: true });
  return pino(
    { level, base: { pid: process.pid }, serializers: { err: errorSummary } },
    { write: (line) => void stderr.write(`${printableJson(line.trimEnd())}\n`) },
  );
}

/** An error without what it carries: the error of a Redis command holds the command, with all of its arguments. */
function errorSummary({ name, message, stack }: Error): object {
  return { type: name, message, stack };
}
