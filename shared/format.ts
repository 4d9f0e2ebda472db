// Numbers and ages for people.

/** Returns a whole number with its thousands separated. */
export function count(value: number): string {
  return value.toLocaleString('en');
}

/** Returns a number with its noun: `1 record`, `2,000 records`. @param noun a noun whose plural ends with s */
export function counted(value: number, noun: string): string {
  return `${count(value)} ${noun}${value === 1 ? '' : 's'}`;
}

/** Returns an age in its largest unit: `3 d`. */
export function age(seconds: number): string {
  const [value, unit] = unitsOf(seconds).find(([value]) => value > 0) ?? [0, 's'];
  return `${value} ${unit}`;
}

/** Returns an age in its two largest units: `3 d 4 h ago`. */
export function ageText(seconds: number): string {
  const units = unitsOf(seconds);
  const first = units.findIndex(([value]) => value > 0);
  if (first === -1) return 'now';
  const largest = units.slice(first, first + 2).filter(([value]) => value > 0);
  const parts = largest.map(([value, unit]) => `${value} ${unit}`);
  return `${parts.join(' ')} ago`;
}

function unitsOf(seconds: number): [value: number, unit: string][] {
  return [
    [Math.floor(seconds / 86_400), 'd'],
    [Math.floor(seconds / 3_600) % 24, 'h'],
    [Math.floor(seconds / 60) % 60, 'min'],
    [Math.floor(seconds) % 60, 's'],
  ];
}
