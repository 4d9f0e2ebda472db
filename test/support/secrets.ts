// In: the settings of a command, and what it printed. Out: an error where that has one of their secrets, or a key.

import type { CommandResult } from './medref.ts';

/** A key; none is printed but by the command that makes it, on stdout. */
const key = /medref_[0-9A-Za-z]{49}/;

/** A word that is shorter may be printed for what it means else. */
const leastLength = 6;

/** Looks through what a command left behind, which every command of the tests does. @throws Error that names the secret's setting */
export function withoutSecrets<Result extends Pick<CommandResult, 'stdout' | 'stderr'>>(
  args: readonly string[],
  settings: Readonly<Record<string, string>>,
  result: Result,
): Result {
  const makesKeys = args[0] === 'keys' && ['create', 'rotate'].includes(args[1] ?? '');
  const { stdout, stderr } = result;
  if (key.test(stderr) || (!makesKeys && key.test(stdout)))
    throw new Error(`medref ${args.join(' ')} has printed a key.`);
  for (const [name, secret] of secretsIn(settings))
    if (stdout.includes(secret) || stderr.includes(secret))
      throw new Error(`medref ${args.join(' ')} has printed what is secret of ${name}.`);
  return result;
}

/** Tokens and secrets as they are, passwords and queries of URLs, and the path of the webhook's. */
function secretsIn(settings: Readonly<Record<string, string>>): [name: string, secret: string][] {
  const found: [string, string][] = [];
  for (const [name, value] of Object.entries(settings)) {
    if (/_(?:TOKEN|SECRET)$/.test(name)) found.push([name, value]);
    if (!name.endsWith('_URL')) continue;
    const [, password = ''] = /^[a-z+]+:\/\/[^/@]*?:([^/@]+)@/.exec(value) ?? [];
    found.push([name, password], [name, /^https?:[^?]*\?(.+)$/.exec(value)?.[1] ?? '']);
    if (name === 'WEBHOOK_URL') found.push([name, /^https?:\/\/[^/]+(\/.+)$/.exec(value)?.[1] ?? '']);
  }
  return found.filter(([, secret]) => secret.length >= leastLength);
}
