// The command `npm run simulate`: prints what the model of an announcement says; `--measure`: measures what Redis does in it.

import { parseArgs } from 'node:util';
import { announcementText, fanOutText } from './announcement-text.ts';
import { measureFanOut } from './redis-fan-out.ts';

const { values } = parseArgs({ options: { measure: { type: 'boolean', default: false } } });
process.stdout.write(`${values.measure ? fanOutText(await measureFanOut()) : announcementText()}\n`);
