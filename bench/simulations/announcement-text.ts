// The model of an announcement as text: what it was given, and what came of it. Out: the tables of docs/SCALE.md.

import { type Spread, simulateAnnouncement } from './announcement.ts';
import { costs, layouts, parameters } from './announcement-costs.ts';
import type { FanOut } from './redis-fan-out.ts';

const seed = 20_261;

/** The tables, as `npm run simulate` prints them. Always the same. */
export function announcementText(): string {
  const outcomes = layouts.map((layout) => simulateAnnouncement(layout, costs, seed));
  return [
    table(
      ['Given', 'Value', 'From'],
      parameters.map(({ means, value, from }) => [means, figure(value), from]),
    ),
    table(
      [
        'Layout',
        'Processes answer from it after, ms: half, 99 %, all',
        'Mirrors have it after, ms: half, 99 %, all',
      ],
      outcomes.map(({ layout, known, answered }) => [layout.name, times(known), times(answered)]),
    ),
    table(
      [
        'Layout',
        'Commands a second of the master while nothing is published',
        'Share of a core for them',
        'Busiest Redis, from the announcement on: busy, ms',
        'sends, MB',
      ],
      outcomes.map(({ layout, restingCommands, restingShare, busy, bytes }) => [
        ...[layout.name, figure(restingCommands), `${figure(restingShare * 100)} %`],
        ...[figure(Math.round(busy)), figure(Math.round(bytes / 1e5) / 10)],
      ]),
    ),
  ].join('\n\n');
}

/** What was measured, as `npm run simulate -- --measure` prints it. */
export function fanOutText(found: readonly FanOut[]): string {
  return table(
    ['For each of 1,000 processes', 'CPU of Redis, ms', 'Bytes'],
    found.map(({ what, cpuMicros, bytes }) => [
      ...[what, figure(Math.round(cpuMicros) / 1_000), figure(bytes)],
    ]),
  );
}

const figure = (value: number) => value.toLocaleString('en', { maximumFractionDigits: 4 });
const times = ({ half, most, last }: Spread) =>
  [half, most, last].map((it) => figure(Math.round(it))).join(' / ');

function table(head: readonly string[], rows: readonly (readonly string[])[]): string {
  return [head, head.map(() => '---'), ...rows].map((cells) => `| ${cells.join(' | ')} |`).join('\n');
}
