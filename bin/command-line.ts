// In: the words of a command line. Out: its exit code, when the one function of the command has ended.
// A command's modules are loaded when it is called, so that each starts with what it needs.

import { readFileSync } from 'node:fs';
import { Command, CommanderError, InvalidArgumentError, Option } from 'commander';
import { readSettings, SettingsError } from '../config/settings.ts';
import { plainReason, RedisUnavailableError } from '../shared/redis/failures.ts';
import {
  parseClient,
  parseCollections,
  parseDuration,
  parseExpiry,
  parseRate,
  parseVersion,
} from './arguments.ts';
import { examplesText } from './examples.ts';
import { exitCodes, LockedError, UsageError } from './exit-codes.ts';
import type { CommandContext, Surroundings } from './surroundings.ts';

/**
 * Runs a command line to its end.
 * @param args without the names of node and of the program
 * @returns the exit code; what went wrong is told in one line on stderr, and never thrown
 */
export async function commandLine(args: readonly string[], surroundings: Surroundings): Promise<number> {
  let exitCode: number = exitCodes.done;
  const perform: Perform = async (run) => {
    const { env, ...others } = surroundings;
    exitCode = await run({ ...others, settings: readSettings(env) });
  };
  try {
    await programOf(perform, surroundings).parseAsync(args, { from: 'user' });
    return exitCode;
  } catch (error) {
    return exitCodeOf(error, surroundings);
  }
}

/** Runs a command with the settings, all of which are checked whatever the command needs. */
type Perform = (run: (context: CommandContext) => Promise<number>) => Promise<void>;

function programOf(perform: Perform, { stdout, stderr, stayUp }: Surroundings): Command {
  const program = new Command('medref')
    .description('Reference data of medicinal products and companies: imported into Redis, served over HTTP.')
    .version(packageVersion(), '--version', 'print the version of medref')
    .exitOverride()
    .configureHelp({ showGlobalOptions: true })
    .configureOutput({
      writeOut: (text) => stdout.write(text),
      writeErr: (text) => stderr.write(text),
      // An error and what was meant are one line.
      outputError: (text, write) => write(`${text.trim().replaceAll('\n', ' ')}\n`),
    })
    .addHelpText('after', examplesText(''))
    .addHelpText('after', '\nSettings are environment variables; docs/OPERATIONS.md lists them.');
  const command = (name: string, description: string, parent: Command = program) =>
    parent
      .command(name)
      .description(description)
      .addOption(new Option('--json', 'print one JSON document and nothing else on stdout'))
      .addHelpText('after', examplesText(parent === program ? name : `${parent.name()} ${name}`));
  const performUntilStopped: Perform = (run) => {
    stayUp();
    return perform(run);
  };

  command('serve', 'run the API').action((options) =>
    performUntilStopped(async (context) =>
      (await import('./commands/serve.ts')).serveCommand(context, options),
    ),
  );

  command('schedule', 'import on the schedule, and at start where nothing is live').action((options) =>
    performUntilStopped(async (context) =>
      (await import('./commands/schedule.ts')).scheduleCommand(context, options),
    ),
  );

  command('import', 'import now; without names, all collections that have a URL')
    .argument('[collection...]', 'collections to import')
    .option('--force', 'publish past the checks')
    .option('--dry-run', 'go the whole way up to publishing, say what would happen, and leave nothing behind')
    .action((names: string[], options) =>
      perform(async (context) =>
        (await import('./commands/import.ts')).importCommand(context, names, options),
      ),
    );

  command('status', 'what is live, how old it is, how the last imports ended, and what to do next')
    .option(
      '--max-age <D>',
      'end with 1 where upstream was not found as it is live for longer, such as 36h (s, m, h, d)',
      parsed(parseDuration),
    )
    .action((options) =>
      perform(async (context) => (await import('./commands/status.ts')).statusCommand(context, options)),
    );

  command('verify', 'read everything that is stored of the kept versions and hold it against its checksums')
    .argument('[collection...]', 'collections to verify; without names, all')
    .option('--repair', 'make anew what the records still tell')
    .action((names: string[], options) =>
      perform(async (context) =>
        (await import('./commands/verify.ts')).verifyCommand(context, names, options),
      ),
    );

  command('versions', 'kept versions, each with the content it holds')
    .argument('<collection>')
    .action((name: string, options) =>
      perform(async (context) =>
        (await import('./commands/versions.ts')).versionsCommand(context, name, options),
      ),
    );

  command('rollback', 'make the content of a kept version live again, and hold the schedule')
    .argument('<collection>')
    .option(
      '--to <N>',
      'the version; without it, what was live before the current content; required while a rollback has paused imports',
      parsed(parseVersion),
    )
    .option('--dry-run', 'print what would change, and change nothing')
    .action((name: string, options) =>
      perform(async (context) =>
        (await import('./commands/rollback.ts')).rollbackCommand(context, name, options),
      ),
    );

  command('resume', 'lift the hold, so that scheduled imports go on')
    .argument('<collection>')
    .action((name: string, options) =>
      perform(async (context) =>
        (await import('./commands/rollback.ts')).resumeCommand(context, name, options),
      ),
    );

  command('diff', 'what differs between two kept versions, record by record')
    .argument('<collection>')
    .option(
      '--from <N>',
      'the earlier version; without it, the one before the live one',
      parsed(parseVersion),
    )
    .option('--to <N>', 'the later version; without it, the live one', parsed(parseVersion))
    .action((name: string, options) =>
      perform(async (context) => (await import('./commands/diff.ts')).diffCommand(context, name, options)),
    );

  command('rejects', 'records that the last import rejected')
    .argument('<collection>')
    .action((name: string, options) =>
      perform(async (context) =>
        (await import('./commands/rejects.ts')).rejectsCommand(context, name, options),
      ),
    );

  const keys = program.command('keys').description('API keys').addHelpText('after', examplesText('keys'));

  command('create', 'make a key; it is printed this once', keys)
    .requiredOption('--client <name>', 'whom it is issued to', parsed(parseClient))
    .option('--expires <ISO>', 'when it expires, such as 2027-01-31T00:00:00Z', parsed(parseExpiry))
    .option('--rate <N/s>', 'requests a second it is made for, such as 10/s', parsed(parseRate))
    .option(
      '--collections <a,b>',
      'the collections it is for, such as products,drugs; without it, all',
      parsed(parseCollections),
    )
    .action((options) =>
      perform(async (context) => (await import('./commands/keys.ts')).createKey(context, options)),
    );

  command('list', 'all keys, without the keys themselves', keys).action((options) =>
    perform(async (context) => (await import('./commands/keys.ts')).listKeys(context, options)),
  );

  command('revoke', 'revoke a key at once', keys)
    .argument('<id>')
    .action((id: string, options) =>
      perform(async (context) => (await import('./commands/keys.ts')).revokeKey(context, id, options)),
    );

  command('rotate', 'make a key that takes the place of another one, which ends a while later', keys)
    .argument('<id>')
    .option(
      '--overlap <D>',
      'for how long the old key goes on working, such as 7d (s, m, h, d); without it, 24h',
      parsed(parseDuration),
    )
    .action((id: string, options) =>
      perform(async (context) => (await import('./commands/keys.ts')).rotateKey(context, id, options)),
    );

  return program;
}

/** The version of the package: of package.json beside the folder of the sources, or beside dist/. */
function packageVersion(): string {
  for (const path of ['../package.json', '../../package.json']) {
    try {
      return (JSON.parse(readFileSync(new URL(path, import.meta.url), 'utf8')) as { version: string })
        .version;
    } catch {
      // It lies further up.
    }
  }
  return 'unknown';
}

/** Tells what went wrong in one line, unless that has been told. */
function exitCodeOf(error: unknown, { env, stderr }: Surroundings): number {
  if (error instanceof CommanderError) {
    const helpWasAskedFor = error.exitCode === 0;
    return helpWasAskedFor ? exitCodes.done : exitCodes.usage;
  }
  stderr.write(`${plainReason(error as Error)}\n`);
  if (error instanceof SettingsError || error instanceof UsageError) return exitCodes.usage;
  if (error instanceof LockedError) return exitCodes.locked;
  if (!(error instanceof RedisUnavailableError) && env['LOG_LEVEL'] === 'debug') {
    stderr.write(`${(error as Error).stack}\n`);
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
