// The processes and the temporary folder of a run. Closing the workspace removes everything in reverse order, also after a
// failure or an interruption.

import { chmod, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type Child, startChild } from '../demo/child.ts';
import { advisedFsync, type Fsync, type PrivateRedis, startPrivateRedis } from '../demo/private-redis.ts';

/** The JSON line that a program prints when it is ready. */
export interface Ready {
  readonly address: string;
}

const readyTimeoutMs = 60_000;

export class Workspace {
  readonly #ending = new AbortController();
  readonly #stops: (() => Promise<unknown>)[] = [];
  readonly #folder: string;
  #files = 0;

  private constructor(folder: string) {
    this.#folder = folder;
  }

  static async open(): Promise<Workspace> {
    const folder = await mkdtemp(join(tmpdir(), 'medref-bench-'));
    // nginx and PostgreSQL read it as their own users.
    await chmod(folder, 0o755);
    return new Workspace(folder);
  }

  /** The temporary folder. */
  get folder(): string {
    return this.#folder;
  }

  /** Returns an unused path in the temporary folder. */
  path(name: string): string {
    return join(this.#folder, `${++this.#files}-${name}`);
  }

  /** Starts a command, which {@link close} stops. */
  async start(
    command: string,
    args: readonly string[],
    options: { env?: NodeJS.ProcessEnv } = {},
  ): Promise<Child> {
    this.#ending.signal.throwIfAborted();
    const child = await startChild(command, args, options);
    return this.#own(child);
  }

  /** Starts a program that prints a JSON document with its address. */
  async startServer(
    command: string,
    args: readonly string[],
    options: { env?: NodeJS.ProcessEnv } = {},
  ): Promise<Child & Ready> {
    const child = await this.start(command, args, options);
    const { address } = await whenReady(child, [command, ...args].join(' '));
    return { ...child, address };
  }

  /** Runs a command to its end. @returns its stdout. @throws if it fails */
  async run(
    command: string,
    args: readonly string[],
    options: { env?: NodeJS.ProcessEnv } = {},
  ): Promise<string> {
    const child = await this.start(command, args, options);
    const code = await child.ended;
    this.#ending.signal.throwIfAborted();
    if (code === 0) return child.output.stdout;
    const said = child.output.stderr.trim() || child.output.stdout.trim();
    throw new Error(`${command} ${args.join(' ')} ended with ${code}: ${said.slice(-2_000)}`);
  }

  /**
   * Starts a private Redis server with an append-only file. By default, it flushes as docs/REDIS.md recommends for its version.
   */
  async startRedis(appendfsync: Fsync = advisedFsync()): Promise<PrivateRedis> {
    this.#ending.signal.throwIfAborted();
    const settings = { appendfsync };
    return this.#own(await startPrivateRedis({ dataFolder: this.path('redis'), appendOnly: true, settings }));
  }

  /** Calls a function when the workspace is closed. */
  onClose(stop: () => Promise<unknown>): void {
    this.#stops.push(stop);
  }

  /** Refuses new processes and fails running ones. */
  abort(reason: Error): void {
    this.#ending.abort(reason);
  }

  /** @throws the reason of {@link abort} */
  throwIfAborted(): void {
    this.#ending.signal.throwIfAborted();
  }

  /** Rejects when {@link abort} is called. */
  aborted(): Promise<never> {
    return new Promise((_, reject) => {
      this.#ending.signal.addEventListener('abort', () => reject(this.#ending.signal.reason));
    });
  }

  /** Stops everything, and removes the folder. */
  async close(): Promise<void> {
    this.#ending.abort(new Error('The bench is over.'));
    for (const stop of this.#stops.splice(0).reverse()) await stop().catch(() => undefined);
    await rm(this.#folder, { recursive: true, force: true });
  }

  async #own<C extends Child>(child: C): Promise<C> {
    if (this.#ending.signal.aborted) {
      await child.stop();
      throw this.#ending.signal.reason;
    }
    const stop = () => child.stop();
    this.#stops.push(stop);
    void child.ended.then(() => {
      const index = this.#stops.indexOf(stop);
      if (index !== -1) this.#stops.splice(index, 1);
    });
    return child;
  }
}

async function whenReady(child: Child, command: string): Promise<Ready> {
  const timeout = new Promise<'late'>((resolve) => setTimeout(resolve, readyTimeoutMs, 'late').unref());
  for (;;) {
    const line = child.output.stdout.split('\n').find((text) => text.startsWith('{"address":'));
    if (line !== undefined) return JSON.parse(line);
    const printed = new Promise((resolve) => child.process.stdout?.once('data', resolve));
    const outcome = await Promise.race([printed, child.ended, timeout]);
    if (outcome === 'late' || child.process.exitCode !== null || child.process.signalCode !== null) {
      throw new Error(`${command} did not become ready: ${child.output.stderr.trim()}`);
    }
  }
}
