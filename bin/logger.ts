// Structured logs, as JSON lines; where they go is the caller's.

import { type Logger, pino } from 'pino';
import { printableJson } from '../shared/escapes.ts';
import type { CommandContext } from './surroundings.ts';

export type { Logger } from 'pino';

/** The logger of one command. */
export function createLogger({ settings, log }: Pick<CommandContext, 'settings' | 'log'>): Logger {
  return pino(
    { level: settings.logLevel, base: { pid: process.pid }, serializers: { err: errorSummary } },
    { write: (line) => log(`${printableJson(line.trimEnd())}\n`) },
  );
}

/** An error without what it carries: the error of a Redis command holds the command, with all of its arguments. */
function errorSummary({ name, message, stack }: Error): object {
  return { type: name, message, stack };
}
