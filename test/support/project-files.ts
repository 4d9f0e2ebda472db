// Files of the project as text, and what deployments of it may run and set.

import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { settingDefinitions } from '../../config/settings.ts';

/** The folder of the project. */
export const root = fileURLToPath(new URL('../..', import.meta.url));

/** The text of a file of the project. */
export const read = (file: string) => readFileSync(join(root, file), 'utf8');

/** Commands that there are. */
export const commands = [...read('bin/command-line.ts').matchAll(/^ {2}command\('(\w+)'/gm)].map(
  ([, name = '']) => name,
);

/**
 * The names of the settings that a process reads: `serve` those that it names, `schedule` those that it names and all
 * that `serve` does not, since it hands all of them on to the import.
 */
export function settingsReadBy(command: 'serve' | 'schedule'): string[] {
  const known = settingDefinitions.map(({ name }) => name);
  const namedIn = (file: string) => {
    const words = new Set(read(file).match(/\b\w+\b(?!\()/g)); // A method of that name is no setting.
    return known.filter((name) =>
      words.has(name.toLowerCase().replace(/_(\w)/g, (_, letter) => letter.toUpperCase())),
    );
  };
  const ofServing = [...namedIn('bin/commands/serve.ts'), ...namedIn('bin/serving.ts')];
  const ofServe = [...new Set([...ofServing, ...namedIn('bin/logger.ts')])];
  if (command === 'serve') return ofServe;
  const ofSchedule = namedIn('bin/commands/schedule.ts');
  return known.filter((name) => ofSchedule.includes(name) || !ofServing.includes(name));
}
