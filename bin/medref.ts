#!/usr/bin/env node
// Parses the command line, calls one function for the command, sets the exit code.
// A command's modules are loaded when it is called, so that each starts with what it needs.

import { Command, CommanderError, InvalidArgumentError, Option } from 'commander';
import { readSettings, type Settings, SettingsError } from '../config/settings.ts';
import { isCronLine } from '../importer/schedule.ts';
import { RedisUnavailableError } from '../shared/redis/failures.ts';
import { createKey, listKeys, parseExpiry, parseRate, revokeKey } from './commands/keys.ts';
import { exitCodes, LockedError, UsageError } from './exit-codes.ts';

/** Whether the command runs until it is asked to stop. */
let staysUp = false;

process.stdout.on('error', (error: NodeJS.ErrnoException) => {
  // Whoever read the results has seen enough; what runs until it is asked to stop runs on.
  if (error.code === 'EPIPE' && staysUp) return;
  if (error.code === 'EPIPE') process.exit();
  process.stderr.write(`The result could not be written: ${error.message}.\n`);
  process.exit(exitCodes.failed);
});

const program = new Command('medref')
  .description('Reference data of medicinal products and companies: imported into Redis, served over HTTP.')
  .exitOverride()
  .configureHelp({ showGlobalOptions: true })
  .addHelpText('after', '\nSettings are environment variables; README.md lists them.');

command('serve', 'run the API').action((options) =>
  stayUp(async (settings) => (await import('./commands/serve.ts')).serveCommand(settings, options)),
);

command('schedule', 'import on the schedule, and at start where nothing is live').action((options) =>
  stayUp(async (settings) => (await import('./commands/schedule.ts')).scheduleCommand(settings, options)),
);

command('import', 'import now; without names, all collections that have a URL')
  .argument('[collection...]', 'collections to import')
  .option('--force', 'publish past the checks')
  .option('--dry-run', 'go the whole way up to publishing, say what would happen, and leave nothing behind')
  .action((names: string[], options) =>
    perform(async (settings) =>
      (await import('./commands/import.ts')).importCommand(settings, names, options),
    ),
  );

command('status', 'live versions, last imports and locks').action((options) =>
  perform(async (settings) => (await import('./commands/status.ts')).statusCommand(settings, options)),
);

command('versions', 'kept versions, each with the content it holds')
  .argument('<collection>')
  .action((name: string, options) =>
    perform(async (settings) =>
      (await import('./commands/versions.ts')).versionsCommand(settings, name, options),
    ),
  );

command('rollback', 'make the content of a kept version live again, and hold the schedule')
  .argument('<collection>')
  .option(
    '--to <N>',
    'the version; without it, what was live before the current content',
    parsed(parseVersion),
  )
  .action((name: string, options) =>
    perform(async (settings) =>
      (await import('./commands/rollback.ts')).rollbackCommand(settings, name, options),
    ),
  );

command('resume', 'lift the hold, so that scheduled imports go on')
  .argument('<collection>')
  .action((name: string, options) =>
    perform(async (settings) =>
      (await import('./commands/rollback.ts')).resumeCommand(settings, name, options),
    ),
  );

command('diff', 'what differs between two kept versions, record by record')
  .argument('<collection>')
  .option('--from <N>', 'the earlier version; without it, the one before the live one', parsed(parseVersion))
  .option('--to <N>', 'the later version; without it, the live one', parsed(parseVersion))
  .action((name: string, options) =>
    perform(async (settings) => (await import('./commands/diff.ts')).diffCommand(settings, name, options)),
  );

command('rejects', 'records that the last import rejected')
  .argument('<collection>')
  .action((name: string, options) =>
    perform(async (settings) =>
      (await import('./commands/rejects.ts')).rejectsCommand(settings, name, options),
    ),
  );

const keys = program.command('keys').description('API keys').exitOverride();

command('create', 'make a key; it is printed this once', keys)
  .requiredOption('--client <name>', 'whom it is issued to', parsed(parseClient))
  .option('--expires <ISO>', 'when it expires, such as 2027-01-31T00:00:00Z', parsed(parseExpiry))
  .option('--rate <N/s>', 'requests a second it is made for, such as 10/s', parsed(parseRate))
  .action((options) => perform((settings) => createKey(settings, options)));

command('list', 'all keys, without the keys themselves', keys).action((options) =>
  perform((settings) => listKeys(settings, options)),
);

command('revoke', 'revoke a key at once', keys)
  .argument('<id>')
  .action((id: string, options) => perform((settings) => revokeKey(settings, id, options)));

try {
  await program.parseAsync();
} catch (error) {
  process.exitCode = exitCodeOf(error);
}

function command(name: string, description: string, parent: Command = program): Command {
  return parent
    .command(name)
    .description(description)
    .exitOverride()
    .addOption(new Option('--json', 'print one JSON document and nothing else on stdout'));
}

/** Runs a command with the settings, all of which are checked whatever the command needs. */
async function perform(run: (settings: Settings) => Promise<number>): Promise<void> {
  process.exitCode = await run(readSettings(process.env, isCronLine));
}

function stayUp(run: (settings: Settings) => Promise<number>): Promise<void> {
  staysUp = true;
  return perform(run);
}

/** Tells what went wrong in one line, unless that has been told. */
function exitCodeOf(error: unknown): number {
  if (error instanceof CommanderError) {
    const helpWasAskedFor = error.exitCode === 0;
    return helpWasAskedFor ? exitCodes.done : exitCodes.usage;
  }
  process.stderr.write(`${(error as Error).message}\n`);
  if (error instanceof SettingsError || error instanceof UsageError) return exitCodes.usage;
  if (error instanceof LockedError) return exitCodes.locked;
  if (!(error instanceof RedisUnavailableError) && process.env['LOG_LEVEL'] === 'debug') {
    process.stderr.write(`${(error as Error).stack}\n`);
  }
  return exitCodes.failed;
}

function parsed<Value>(parse: (text: string) => Value): (text: string) => Value {
  return (text) => {
    try {
      return parse(text);
    } catch (error) {
      throw new InvalidArgumentError((error as Error).message);
    }
  };
}

function parseVersion(text: string): number {
  const version = Number(text);
  if (/^[0-9]+$/.test(text) && version >= 1 && version <= Number.MAX_SAFE_INTEGER) return version;
  throw new Error('It takes the number of a version.');
}

function parseClient(text: string): string {
  if (text.trim() === '' || text.length > 200 || /\p{Cc}/u.test(text)) {
    throw new Error('It takes a name of 1 to 200 characters, without control characters.');
  }
  return text;
}
