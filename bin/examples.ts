// Examples for the help of each command, by its name: what to type, and what it is for.

/** A command line, and what it does. */
export type Example = readonly [line: string, what: string];

/** By the words of a command; `''`: of medref itself. */
export const examples: Readonly<Record<string, readonly Example[]>> = {
  '': [
    ['medref import', 'import all that has a URL'],
    ['medref status', 'see what is live, and what to do next'],
    ['medref keys create --client "Pharmacy 7"', 'let a client in'],
  ],
  serve: [['API_PORT=8080 medref serve', 'answer on another port']],
  schedule: [["IMPORT_CRON='*/15 6-20 * * *' medref schedule", 'import each quarter of an hour by day']],
  import: [
    ['medref import products', 'import one collection'],
    ['medref import --dry-run', 'see what an import would do, and publish nothing'],
    ['medref import products --force', 'publish what a check has refused'],
  ],
  status: [
    ['medref status', 'see what is live, and what to do next'],
    ['medref status --max-age 36h', 'end with 1 where a list is too old, for monitoring'],
    ['medref status --json | jq .collections[].stale', 'read it by a program'],
  ],
  verify: [
    ['medref verify', 'read all that is stored'],
    ['medref verify products --repair', 'make anew what is damaged'],
  ],
  versions: [['medref versions products', 'see what can be rolled back to']],
  rollback: [
    ['medref rollback products --dry-run', 'see what a rollback would change'],
    ['medref rollback products', 'go back to what was live before'],
    ['medref rollback products --to 20261122030000', 'go back to a version'],
  ],
  resume: [['medref resume products', 'let scheduled imports go on after a rollback']],
  diff: [
    ['medref diff products', 'see what the live version changed'],
    ['medref diff products --from 20261121030000 | less', 'compare an older version with the live one'],
  ],
  rejects: [
    ['medref rejects products', 'see what was rejected, and why'],
    ['medref rejects products --json > rejects.json', 'send it to who runs upstream'],
  ],
  keys: [['medref keys list', 'see who has a key, and who uses it']],
  'keys create': [
    ['medref keys create --client "Pharmacy 7"', 'make a key'],
    ['medref keys create --client "Pharmacy 7" --expires 2099-12-31', 'make one that expires'],
    ['medref keys create --client "Depot" --collections products,drugs', 'make one for two collections'],
  ],
  'keys list': [['medref keys list', 'see who has a key, and who uses it']],
  'keys revoke': [['medref keys revoke 077e2b2b83d5', 'end a key, by its id in the list']],
  'keys rotate': [
    ['medref keys rotate 077e2b2b83d5', 'replace a key, which works for another day'],
    ['medref keys rotate 077e2b2b83d5 --overlap 7d', 'give its client a week'],
  ],
};

/** The examples of a command, as its help shows them after all else. */
export function examplesText(command: string): string {
  const its = examples[command] ?? [];
  const lines = its.flatMap(([line, what]) => [`    # ${what}`, `    ${line}`]);
  return ['', 'Examples:', ...lines].join('\n');
}
