// In: what hostile clients do. Out: a process in which they do it.

import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import type { HostileOrder } from './hostile-clients.ts';

const entry = fileURLToPath(new URL('hostile-clients.ts', import.meta.url));

/** Hostile clients at work. */
export interface HostileClients {
  /** The next thing that they tell. @throws Error where they end before */
  told<Message>(): Promise<Message>;
  /** Asks them what they got so far. */
  ask<Message>(): Promise<Message>;
  stop(): Promise<void>;
}

/** Starts them; whoever calls this calls `stop`. */
export function startHostileClients(order: HostileOrder): HostileClients {
  const child: ChildProcess = fork(entry, [JSON.stringify(order)], { execArgv: ['--import', 'tsx'] });
  const ended = once(child, 'exit');
  const told = async <Message>() => {
    const next = await Promise.race([once(child, 'message'), ended.then(() => null)]);
    if (next === null) throw new Error('The hostile clients ended.');
    return next[0] as Message;
  };
  return {
    told,
    ask<Message>() {
      child.send('tell');
      return told<Message>();
    },
    async stop() {
      child.kill('SIGKILL');
      await ended;
    },
  };
}
