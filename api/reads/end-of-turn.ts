// What is to be asked of Redis at the end of a turn of the event loop, so that all of it goes out in one write.

let waiting: (() => void)[] = [];

/** Acts when all requests of this turn were looked at, right after those who asked for it before. */
export function atEndOfTurn(act: () => void): void {
  if (waiting.length === 0) setImmediate(endTurn);
  waiting.push(act);
}

function endTurn(): void {
  const acts = waiting;
  waiting = [];
  for (const act of acts) act();
}
