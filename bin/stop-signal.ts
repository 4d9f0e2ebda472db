// In: SIGINT, SIGTERM, or the SIGHUP of a terminal that is closed. Out: an abort signal, so that a command can end what
// it has begun; a second one ends it at once.

/** A signal that is aborted when the process is asked to stop. */
export function stopSignal(): AbortSignal {
  const controller = new AbortController();
  for (const name of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) {
    process.once(name, () => controller.abort(new Error(`It was stopped by ${name}.`)));
  }
  return controller.signal;
}

/** Waits until a signal is aborted. */
export async function aborted(signal: AbortSignal): Promise<void> {
  if (signal.aborted) return;
  await new Promise((resolve) => signal.addEventListener('abort', resolve, { once: true }));
}
