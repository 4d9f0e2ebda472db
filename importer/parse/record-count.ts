// How sentences name a number of records.

/** `1 record`, `2 records` */
export function recordCount(count: number): string {
  return `${count} record${count === 1 ? '' : 's'}`;
}

/** The verb of so many things. */
export function wasOrWere(count: number): string {
  return count === 1 ? 'was' : 'were';
}
