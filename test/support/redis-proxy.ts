// A TCP proxy in front of a Redis server. It counts commands and causes faults at chosen ones.

import { createHash } from 'node:crypto';
import { readdirSync, readFileSync } from 'node:fs';
import { type AddressInfo, connect, createServer, type Socket } from 'node:net';
import { basename } from 'node:path';

/** A command on its way to Redis. */
export interface ProxiedCommand {
  /** Its number among all commands of the proxy's clients, from 1. */
  readonly nth: number;
  /** `GET`, or the name of our script that the command runs, for example `publish`. */
  readonly name: string;
}

/** One client's connection. */
export interface Link {
  /** Cuts the connection on both sides; Redis still gets all commands that were forwarded before. */
  cut(): void;
}

/** A fault at one command. */
export interface Strike {
  /** Before the command is forwarded, or after Redis has executed it and before its reply is forwarded. */
  readonly moment: 'before' | 'after';
  /** Causes the fault. Nothing passes on the link until it resolves; then all continues, unless the link was cut. */
  act(link: Link, reply: string): unknown;
  /** Commands still go to Redis meanwhile; only replies wait. */
  readonly commandsPass?: boolean;
}

export interface RedisProxy {
  readonly url: string;
  /** The names of all commands so far. */
  readonly commands: readonly string[];
  /** Whether new connections are cut at once. */
  refusing: boolean;
  close(): Promise<void>;
}

/** Chooses the fault of a command; `undefined`: none. */
export type Fate = (command: ProxiedCommand) => Strike | undefined;

/** Starts a proxy in front of the Redis on a port; the caller calls `close`. */
export async function startRedisProxy(redisPort: number, fate: Fate = () => undefined): Promise<RedisProxy> {
  const commands: string[] = [];
  const links = new Set<Link>();
  const server = createServer((client) => {
    if (proxy.refusing) {
      client.on('error', () => undefined).destroy();
      return;
    }
    const redis = connect(redisPort, '127.0.0.1');
    for (const socket of [client, redis]) socket.setNoDelay().on('error', () => undefined);
    const link: Link = {
      cut: () => {
        links.delete(link);
        client.destroy();
        redis.end(() => redis.destroy());
      },
    };
    links.add(link);
    join({ client, redis, link, commands, fate }).finally(link.cut);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const proxy: RedisProxy = {
    url: `redis://127.0.0.1:${(server.address() as AddressInfo).port}`,
    commands,
    refusing: false,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        for (const link of links) link.cut();
      }),
  };
  return proxy;
}

/** Returns a fate that strikes only the first command for which `isMeant` returns true. */
export function strikeOnce(isMeant: (command: ProxiedCommand) => boolean, strike: Strike): Fate {
  let struck = false;
  return (command) => {
    if (struck || !isMeant(command)) return undefined;
    struck = true;
    return strike;
  };
}

/** Forwards commands and replies until one side ends. */
async function join({
  client,
  redis,
  link,
  commands,
  fate,
}: {
  client: Socket;
  redis: Socket;
  link: Link;
  commands: string[];
  fate: Fate;
}): Promise<void> {
  /** For each command without a reply yet: the function to call with its reply. */
  const awaited: (((reply: string) => unknown) | undefined)[] = [];

  const passCommands = async () => {
    for await (const frame of frames(client)) {
      const name = commandName(frame);
      const strike = fate({ nth: commands.push(name), name });
      if (strike?.moment === 'before') await strike.act(link, '');
      if (client.destroyed) return;
      if (strike?.moment !== 'after') {
        awaited.push(undefined);
        redis.write(frame);
        continue;
      }
      const done = new Promise((resolve, reject) => {
        awaited.push((reply) => Promise.resolve(strike.act(link, reply)).then(resolve, reject));
      });
      redis.write(frame);
      if (!strike.commandsPass) await done;
    }
  };
  const passReplies = async () => {
    for await (const frame of frames(redis)) {
      const isPush = frame[0] === 0x3e;
      if (!isPush) await awaited.shift()?.(frame.toString());
      if (client.destroyed) return;
      client.write(frame);
    }
  };
  await Promise.race([passCommands(), passReplies()]).catch(() => undefined);
}

/** Yields the RESP values of a connection as bytes. */
async function* frames(socket: Socket): AsyncGenerator<Buffer, void> {
  let rest = Buffer.alloc(0);
  for await (const chunk of socket) {
    rest = Buffer.concat([rest, chunk as Buffer]);
    for (let end = frameEnd(rest, 0); end !== undefined; end = frameEnd(rest, 0)) {
      yield rest.subarray(0, end);
      rest = rest.subarray(end);
    }
  }
}

/** Returns the end of the RESP value that begins at `at`; `undefined` while a part of it is missing. */
function frameEnd(bytes: Buffer, at: number): number | undefined {
  const lineEnd = bytes.indexOf('\r\n', at);
  if (lineEnd === -1) return undefined;
  const type = String.fromCharCode(bytes[at] as number);
  const size = Number(bytes.toString('latin1', at + 1, lineEnd));
  let end: number | undefined = lineEnd + 2;
  if ('$=!'.includes(type)) {
    if (size >= 0) end += size + 2;
    return end <= bytes.length ? end : undefined;
  }
  const elements = { '*': size, '~': size, '>': size, '%': 2 * size, '|': 2 * size + 1 }[type] ?? 0;
  for (let i = 0; i < elements && end !== undefined; i++) {
    end = end < bytes.length ? frameEnd(bytes, end) : undefined;
  }
  return end;
}

function commandName(frame: Buffer): string {
  // *3 $7 EVALSHA $40 <digest> …, each on its own line; the text of a script has lines, too.
  const head = frame.toString('latin1', 0, 8_192);
  const [, , name = '', , digest = ''] = head.split('\r\n', 5);
  const command = name.toUpperCase();
  if (command === 'EVALSHA') return scriptNames.get(digest) ?? command;
  if (command !== 'EVAL') return command;
  const text = /^\*\d+\r\n\$\d+\r\n\w+\r\n\$(\d+)\r\n/.exec(head);
  const from = text?.[0].length ?? 0;
  return scriptNames.get(sha1(frame.subarray(from, from + Number(text?.[1])))) ?? command;
}

/** The texts of our scripts by name. */
export const scriptTexts: ReadonlyMap<string, string> = new Map(
  ['importer', 'shared'].flatMap((folder) => {
    const url = new URL(`../../${folder}/`, import.meta.url);
    const files = readdirSync(url, { recursive: true, encoding: 'utf8' }).filter((it) => it.endsWith('.lua'));
    return files.map((file) => [basename(file, '.lua'), readFileSync(new URL(file, url), 'utf8')] as const);
  }),
);

/** The names of our scripts by the digest of their text. */
export const scriptNames: ReadonlyMap<string, string> = new Map(
  [...scriptTexts].map(([name, text]) => [sha1(text), name]),
);

function sha1(bytes: Uint8Array | string): string {
  return createHash('sha1').update(bytes).digest('hex');
}
