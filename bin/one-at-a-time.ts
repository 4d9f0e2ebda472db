// In: things to do. Out: they are done one after the other, in the order in which they were asked for.

/** Makes a function that does one thing at a time, and gives what came of it. Nothing is kept of what has ended. */
export function oneAtATime(): <Result>(work: () => Promise<Result>) => Promise<Result> {
  let last: Promise<unknown> = Promise.resolve();
  return (work) => {
    const done = last.then(work);
    last = done.then(forget, forget);
    return done;
  };
}

function forget(): void {}
