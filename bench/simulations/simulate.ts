// The command `npm run simulate`: prints what the model of an announcement says; `--measure`: measures what Redis does in it;
// `--sharing`: measures what three versions take where they share what did not change.

import { parseArgs } from 'node:util';
import { announcementText, fanOutText } from './announcement-text.ts';
import { measureFanOut } from './redis-fan-out.ts';
import { sharingText } from './shared-contents.ts';

const flag = { type: 'boolean', default: false } as const;
const { values } = parseArgs({ options: { measure: flag, sharing: flag } });
process.stdout.write(`${await asked()}\n`);

async function asked(): Promise<string> {
  if (values.sharing) return sharingText((line) => process.stderr.write(`simulate: ${line}\n`));
  return values.measure ? fanOutText(await measureFanOut()) : announcementText();
}
