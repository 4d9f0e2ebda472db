// Many things that end with one signal, by one listener: Node warns of a signal with more than ten.

const watched = new WeakMap<AbortSignal, Set<() => void>>();

/** Calls a function when a signal is aborted. @returns what takes it back */
export function onAbort(signal: AbortSignal, act: () => void): () => void {
  const acts = watched.get(signal) ?? new Set();
  if (!watched.has(signal)) {
    watched.set(signal, acts);
    signal.addEventListener('abort', () => {
      for (const it of acts) it();
    });
  }
  acts.add(act);
  return () => void acts.delete(act);
}
