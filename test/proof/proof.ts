// Settings of proofs: they do a little in `npm test`, and everything in `npm run prove` (PROVE=full).

/** Whether every case is tested, with the times and sizes of production. */
export const isFull = process.env['PROVE'] === 'full';

/** The seed of all random values in a proof; SEED repeats a run. */
export const seed = Number(process.env['SEED'] ?? 1 + Math.floor(Math.random() * 99_999));

/** Prints a result of a full run below the title of its test. */
export function note(text: string): void {
  if (isFull) process.stdout.write(`      ${text}\n`);
}

/** Prints how often each thing happened. */
export function noteCounts(counts: ReadonlyMap<string | number, number>): void {
  const sorted = [...counts].sort(([a], [b]) => (a < b ? -1 : 1));
  for (const [what, count] of sorted) note(`${String(count).padStart(8)}  ${what}`);
}
