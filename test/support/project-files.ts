// Files of the project as text, and what deployments of it may run and set.

import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { settingDefinitions } from '../../config/definitions.ts';

/** The folder of the project. */
export const root = fileURLToPath(new URL('../..', import.meta.url));

/** The text of a file of the project. */
export const read = (file: string) => readFileSync(join(root, file), 'utf8');

/** Commands that there are. */
export const commands = [...read('bin/command-line.ts').matchAll(/^ {2}command\('(\w+)'/gm)].map(
  ([, name = '']) => name,
);

/** Settings that both processes read. */
const shared = ['REDIS_URL', 'KEY_PREFIX', 'IMPORT_CRON', 'IMPORT_TIMEZONE', 'LOG_LEVEL'];

/** Settings that `medref serve` alone reads. */
const ofServing = [
  ...[
    'READ_FROM',
    'API_HOST',
    'API_PORT',
    'ADMIN_HOST',
    'ADMIN_PORT',
    'ADMIN_TOKEN',
    'BASE_URL',
    'TRUSTED_PROXIES',
  ],
  ...['DEFAULT_RATE', 'WORKERS', 'CORS_ORIGINS', 'ACCESS_LOG'],
];

/** Returns the names of the settings that a process reads: all but those of `serve` belong to the schedule. */
export function settingsReadBy(command: 'serve' | 'schedule'): string[] {
  if (command === 'serve') return [...shared, ...ofServing];
  return settingDefinitions.map(({ name }) => name).filter((name) => !ofServing.includes(name));
}
