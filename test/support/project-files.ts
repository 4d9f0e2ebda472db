// Files of the project as text, and the commands and settings that its deployments may use.

import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { settingDefinitions } from '../../config/definitions.ts';

/** The folder of the project. */
export const root = fileURLToPath(new URL('../..', import.meta.url));

/** Reads a file of the project as text. */
export const read = (file: string) => readFileSync(join(root, file), 'utf8');

/** All commands. */
export const commands = [...read('bin/command-line.ts').matchAll(/^ {2}command\('(\w+)'/gm)].map(
  ([, name = '']) => name,
);

/** Settings that both processes read. */
const shared = ['REDIS_URL', 'KEY_PREFIX', 'LOG_LEVEL'];

/** Settings that only `medref serve` reads. */
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

/** Returns the names of the settings that a process reads; the schedule reads all except those of `serve`. */
export function settingsReadBy(command: 'serve' | 'schedule'): string[] {
  if (command === 'serve') return [...shared, ...ofServing];
  return settingDefinitions.map(({ name }) => name).filter((name) => !ofServing.includes(name));
}
