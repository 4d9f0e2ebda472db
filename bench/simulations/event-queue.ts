// What is to happen, in the order of its time: a binary heap. Of two things at one time, the one that was added first.

/** Happens at its time, which it is given. */
export type Happening = (now: number) => void;

export interface EventQueue {
  add(at: number, happening: Happening): void;
  /** Lets everything happen, also what is added meanwhile. */
  run(): void;
}

interface Entry {
  readonly at: number;
  readonly n: number;
  readonly happening: Happening;
}

const isBefore = (a: Entry, b: Entry) => a.at < b.at || (a.at === b.at && a.n < b.n);

/** An empty queue. */
export function newEventQueue(): EventQueue {
  const heap: Entry[] = [];
  let added = 0;
  const swap = (a: number, b: number) => {
    [heap[a], heap[b]] = [heap[b] as Entry, heap[a] as Entry];
  };
  const goesBefore = (a: number, b: number) => isBefore(heap[a] as Entry, heap[b] as Entry);

  function next(): Entry | undefined {
    const first = heap[0];
    const last = heap.pop();
    if (heap.length === 0 || last === undefined) return first;
    heap[0] = last;
    for (let place = 0; ; ) {
      const [left, right] = [2 * place + 1, 2 * place + 2];
      let least = place;
      if (left < heap.length && goesBefore(left, least)) least = left;
      if (right < heap.length && goesBefore(right, least)) least = right;
      if (least === place) return first;
      swap(place, least);
      place = least;
    }
  }

  return {
    add(at, happening) {
      let place = heap.push({ at, n: added++, happening }) - 1;
      for (let above = (place - 1) >> 1; place > 0 && goesBefore(place, above); above = (place - 1) >> 1) {
        swap(place, above);
        place = above;
      }
    },
    run() {
      for (let entry = next(); entry; entry = next()) entry.happening(entry.at);
    },
  };
}
