// The command line (commander): commands, options, examples, and exit codes.
// Each command's module is loaded when it runs, so that commands start fast.

import { Command, CommanderError, InvalidArgumentError, Option } from 'commander';
import { readSettings, SettingsError } from '../config/settings.ts';
import { plainReason, RedisUnavailableError } from '../shared/redis/failures.ts';
import {
  parseClient,
  parseCollections,
  parseDuration,
  parseExpiry,
  parseOverlap,
  parseRate,
  parseReason,
  parseVersion,
  parseVersionOrCandidate,
} from './arguments.ts';
import { type CliContext, type CommandContext, exitCodes, LockedError, UsageError } from './context.ts';
import { wrapped } from './output.ts';
import { packageVersion } from './package-version.ts';

/** An example for the help: a command line and its purpose. */
type Example = readonly [line: string, what: string];

/**
 * Runs a command line to its end. Writes errors to stderr in one line, and never throws.
 * @param args without the names of node and the program
 * @returns the exit code
 */
export async function commandLine(args: readonly string[], cli: CliContext): Promise<number> {
  let exitCode: number = exitCodes.done;
  const { env, ...others } = cli;
  const perform: Perform = async (run) => {
    const settings = readSettings(env);
    // On a terminal, the printed result replaces the log.
    const logLevel = cli.stderr.isTTY && !env['LOG_LEVEL'] ? 'silent' : settings.logLevel;
    exitCode = await run({ ...others, settings: { ...settings, logLevel } });
  };
  try {
    await createProgram(perform, cli).parseAsync(args, { from: 'user' });
    return exitCode;
  } catch (error) {
    return exitCodeOf(error, cli);
  }
}

/** Runs a command with validated settings. */
type Perform = (run: (context: CommandContext) => Promise<number>) => Promise<void>;

function createProgram(perform: Perform, { env, stdout, stderr, stayUp }: CliContext): Command {
  const program = new Command('medref')
    .description('Reference data of medicinal products and companies: imported into Redis, served over HTTP.')
    .version(packageVersion(), '--version', 'print the version of medref')
    .exitOverride()
    .configureHelp({ showGlobalOptions: true })
    .configureOutput({
      writeOut: (text) => stdout.write(text),
      writeErr: (text) => stderr.write(text),
      // An error and its suggestion form one line.
      outputError: (text, write) => write(`${text.trim().replaceAll('\n', ' ')}\n`),
    })
    .addHelpText(
      'after',
      examplesText([
        ['medref import', 'import every collection that has a URL'],
        ['medref status', 'see live versions, problems and next steps'],
        ['medref keys create --client "Pharmacy 7"', 'give a client access'],
      ]),
    )
    .addHelpText('after', '\nSettings are environment variables; docs/CONFIGURATION.md lists them.');
  const command = (
    name: string,
    description: string,
    examples: readonly Example[],
    parent: Command = program,
  ) =>
    parent
      .command(name)
      .description(description)
      .addOption(new Option('--json', 'print one JSON document on stdout'))
      .addHelpText('after', examplesText(examples));
  const performUntilStopped: Perform = (run) => {
    stayUp();
    return perform((context) => run({ ...context, settings: readSettings(env) }));
  };

  command('serve', 'run the API', [['API_PORT=8080 medref serve', 'listen on another port']]).action(
    (options) =>
      performUntilStopped(async (context) =>
        (await import('./commands/serve.ts')).serveCommand(context, options),
      ),
  );

  command('schedule', 'import on the schedule, and at start if a collection has no live version', [
    ["IMPORT_CRON='*/15 6-20 * * *' medref schedule", 'import every 15 minutes during the day'],
  ]).action((options) =>
    performUntilStopped(async (context) =>
      (await import('./commands/schedule.ts')).scheduleCommand(context, options),
    ),
  );

  command('import', 'import now; without names, all collections that have a URL', [
    ['medref import products', 'import one collection'],
    ['medref import --dry-run', 'see the result of an import without publishing'],
    ['medref import products --force', 'publish in spite of the checks'],
  ])
    .argument('[collection...]', 'collections to import')
    .option('--force', 'skip the checks')
    .option('--dry-run', 'do everything except publishing; store nothing')
    .action((names: string[], options) =>
      perform(async (context) =>
        (await import('./commands/import.ts')).importCommand(context, names, options),
      ),
    );

  const reason = () =>
    new Option('--reason <TEXT>', 'why, for the history: 1 to 500 characters').argParser(parsed(parseReason));

  command('publish', 'publish the candidate of a collection as it is, without asking upstream', [
    ['medref diff products --to candidate', 'see what it would change'],
    ['medref publish products --reason "checked with the ministry"', 'make it live'],
    ['medref publish products --candidate 20261122030000', 'publish only the candidate that you have seen'],
  ])
    .argument('<collection>', 'products or companies')
    .option('--candidate <N>', 'its number; publish no other one', parsed(parseVersion))
    .addOption(reason())
    .action((name: string, options) =>
      perform(async (context) =>
        (await import('./commands/candidates.ts')).publishCommand(context, name, options),
      ),
    );

  command('discard', 'delete the candidate of a collection', [
    ['medref discard products --reason "upstream sends a new list"', 'delete it'],
  ])
    .argument('<collection>', 'products or companies')
    .addOption(reason())
    .action((name: string, options) =>
      perform(async (context) =>
        (await import('./commands/candidates.ts')).discardCommand(context, name, options),
      ),
    );

  command('status', 'show live versions, their age, the last imports, and what to do next', [
    ['medref status', 'see live versions, problems and next steps'],
    ['medref status --max-age 36h', 'exit 1 if a list is too old, for monitoring'],
    ['medref status --json | jq .collections[].stale', 'read it with a program'],
  ])
    .option(
      '--max-age <D>',
      'exit 1 if the last successful upstream check is older than this, such as 36h (s, m, h, d)',
      parsed(parseDuration),
    )
    .action((options) =>
      perform(async (context) => (await import('./commands/status.ts')).statusCommand(context, options)),
    );

  command('verify', 'check all stored data of the kept versions against its checksums', [
    ['medref verify', 'check all collections'],
    ['medref verify products --repair', 'rebuild damaged data'],
  ])
    .argument('[collection...]', 'collections to verify; without names, all')
    .option('--repair', 'rebuild damaged data from intact records')
    .action((names: string[], options) =>
      perform(async (context) =>
        (await import('./commands/verify.ts')).verifyCommand(context, names, options),
      ),
    );

  command('versions', 'list the kept versions and their contents', [
    ['medref versions products', 'see what you can roll back to'],
  ])
    .argument('<collection>', 'products, drugs or companies')
    .action((name: string, options) =>
      perform(async (context) =>
        (await import('./commands/versions.ts')).versionsCommand(context, name, options),
      ),
    );

  command('rollback', 'publish the content of an earlier version again, and pause scheduled imports', [
    ['medref rollback products --dry-run', 'see the changes of a rollback'],
    ['medref rollback products', 'go back to the content before the current one'],
    ['medref rollback products --to 20261122030000', 'go back to a version'],
  ])
    .argument('<collection>', 'products or companies')
    .option(
      '--to <N>',
      'the version; default: the content before the current one; required while a rollback has paused imports',
      parsed(parseVersion),
    )
    .option('--dry-run', 'print what would change, and change nothing')
    .addOption(reason())
    .action((name: string, options) =>
      perform(async (context) =>
        (await import('./commands/versions.ts')).rollbackCommand(context, name, options),
      ),
    );

  command('resume', 'resume scheduled imports after a rollback', [
    ['medref resume products', 'resume scheduled imports'],
  ])
    .argument('<collection>', 'products or companies')
    .action((name: string, options) =>
      perform(async (context) =>
        (await import('./commands/versions.ts')).resumeCommand(context, name, options),
      ),
    );

  command('diff', 'show the records that differ between two kept versions, or in the candidate', [
    ['medref diff products', 'see the changes of the live version'],
    ['medref diff products --all | less', 'see each changed record'],
    ['medref diff products --to candidate', 'compare the live version with the candidate'],
    ['medref diff products --from 20261121030000', 'compare an older version with the live one'],
  ])
    .argument('<collection>', 'products, drugs or companies')
    .option(
      '--from <N>',
      'the earlier version; default: the one before the later version; the live one for the candidate',
      parsed(parseVersion),
    )
    .option(
      '--to <N>',
      'the later version, or "candidate"; default: the live one',
      parsed(parseVersionOrCandidate),
    )
    .option('--all', 'print all differences, not ten of each kind')
    .action((name: string, options) =>
      perform(async (context) =>
        (await import('./commands/versions.ts')).diffCommand(context, name, options),
      ),
    );

  command('rejects', 'show the records that the last import rejected', [
    ['medref rejects products', 'see the reasons, and ten examples'],
    ['medref rejects products --all', 'see all rejected records that are kept'],
    ['medref rejects products --json > rejects.json', 'send it to the operator of upstream'],
  ])
    .argument('<collection>', 'products or companies')
    .option('--all', 'print all rejected records that are kept, not ten')
    .action((name: string, options) =>
      perform(async (context) =>
        (await import('./commands/status.ts')).rejectsCommand(context, name, options),
      ),
    );

  const listExample: Example = ['medref keys list', 'see the clients and when each last used its key'];
  const keys = program
    .command('keys')
    .description('API keys')
    .addHelpText('after', examplesText([listExample]));

  command(
    'create',
    'create a key and print it once',
    [
      ['medref keys create --client "Pharmacy 7"', 'create a key'],
      ['medref keys create --client "Pharmacy 7" --expires 2099-12-31', 'create a key that expires'],
      [
        'medref keys create --client "Depot" --collections products,drugs',
        'create a key for two collections',
      ],
    ],
    keys,
  )
    .requiredOption('--client <name>', 'the client that gets it', parsed(parseClient))
    .option('--expires <ISO>', 'when it expires, such as 2027-01-31T00:00:00Z', parsed(parseExpiry))
    .option('--rate <N/s>', 'its rate limit, such as 10/s', parsed(parseRate))
    .option(
      '--collections <a,b>',
      'collections that it may read, such as products,drugs; default: all',
      parsed(parseCollections),
    )
    .action((options) =>
      perform(async (context) => (await import('./commands/keys.ts')).createKey(context, options)),
    );

  command('list', 'list all keys without their secrets', [listExample], keys).action((options) =>
    perform(async (context) => (await import('./commands/keys.ts')).listKeys(context, options)),
  );

  command(
    'revoke',
    'revoke a key at once',
    [['medref keys revoke 077e2b2b83d5', 'revoke a key by its id in the list']],
    keys,
  )
    .argument('<id>')
    .action((id: string, options) =>
      perform(async (context) => (await import('./commands/keys.ts')).revokeKey(context, id, options)),
    );

  command(
    'rotate',
    'replace a key; the old one expires after an overlap',
    [
      ['medref keys rotate 077e2b2b83d5', 'replace a key; the old one works for another day'],
      ['medref keys rotate 077e2b2b83d5 --overlap 7d', 'let the old one work for a week'],
    ],
    keys,
  )
    .argument('<id>')
    .option(
      '--overlap <D>',
      'how long the old key still works, such as 7d or 0s (s, m, h, d); default: 24h',
      parsed(parseOverlap),
    )
    .action((id: string, options) =>
      perform(async (context) => (await import('./commands/keys.ts')).rotateKey(context, id, options)),
    );

  return program;
}

/** Returns the exit code of an error, and prints the error unless commander has done so. */
function exitCodeOf(error: unknown, { env, stderr }: CliContext): number {
  if (error instanceof CommanderError) {
    const isHelp = error.exitCode === 0;
    return isHelp ? exitCodes.done : exitCodes.usage;
  }
  const lines = plainReason(error as Error).split('\n');
  stderr.write(`${lines.map((line) => (stderr.isTTY ? wrapped(line, '  ', '') : line)).join('\n')}\n`);
  if (error instanceof SettingsError || error instanceof UsageError) return exitCodes.usage;
  if (error instanceof LockedError) return exitCodes.locked;
  if (!(error instanceof RedisUnavailableError) && env['LOG_LEVEL'] === 'debug')
    stderr.write(`${(error as Error).stack}\n`);
  return exitCodes.failed;
}

/** Returns the examples for the end of the help. */
function examplesText(examples: readonly Example[]): string {
  const lines = examples.flatMap(([line, what]) => [`    # ${what}`, `    ${line}`]);
  return ['', 'Examples:', ...lines].join('\n');
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
