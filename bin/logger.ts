// Structured logs, as JSON lines on stderr; stdout belongs to results.

import { type Logger, pino } from 'pino';

export type { Logger } from 'pino';

/** The logger of one command. */
export function createLogger(level: string): Logger {
  return pino({ level, base: { pid: process.pid } }, pino.destination({ fd: 2, sync: true }));
}
