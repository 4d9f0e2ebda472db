// Who may read the dashboard: the holder of ADMIN_TOKEN or, without a token, this machine under a name of its own. Another
// site may point its name at loopback (DNS rebinding), so the Host is checked, too.

import { hash, timingSafeEqual } from 'node:crypto';
import type { IncomingMessage } from 'node:http';
import { BlockList, isIP } from 'node:net';
import Boom from '@hapi/boom';
import { LRUCache } from 'lru-cache';
import { networkOf } from '../proxy.ts';

const loopback = new BlockList();
loopback.addSubnet('127.0.0.0', 8, 'ipv4');
loopback.addAddress('::1', 'ipv6');

/** A `Host` that is an address or `localhost`, with or without a port. */
const hostForm = /^(?:(localhost|\d{1,3}(?:\.\d{1,3}){3})|\[([0-9a-f:.]+)\])(?::\d{1,5})?$/i;

/** Basic credentials, RFC 7617. */
const basic = /^basic +([A-Za-z0-9+/]+={0,2})$/i;

const challenge = 'Basic realm="medref", charset="UTF-8"';

/** The limit of wrong passwords from one network; beyond it the right password is refused, too, so guessing is useless. */
const wrongPasswords = { atOnce: 10, forgivenMs: 6_000 } as const;

/** Networks whose wrong passwords are counted; the least recently seen ones are forgotten first. */
const maxNetworks = 10_000;

/**
 * Returns a check of requests that throws Boom 401 for a wrong password, 429 after too many, and 403 from other machines.
 * @param token the password, with any user name; `undefined`: only this machine may read
 * @param onWrong receives the network that sent a wrong password
 */
export function adminAccess(
  token: string | undefined,
  onWrong: (network: string) => void,
): (request: IncomingMessage) => void {
  if (token === undefined) return requireThisMachine;
  const expected = digest(token);
  const failed = new WrongPasswords();
  return ({ socket, headers: { authorization = '' } }) => {
    const network = networkOf(socket.remoteAddress ?? '');
    if (failed.isOver(network)) throw tooManyWrong();
    const sent = passwordIn(authorization);
    if (sent !== null && timingSafeEqual(digest(sent), expected)) return;
    // The first request of a browser has no password.
    if (authorization !== '') {
      failed.count(network);
      onWrong(network);
    }
    const error = Boom.unauthorized('Enter any user name, and the value of ADMIN_TOKEN as the password.');
    error.output.headers['WWW-Authenticate'] = challenge;
    throw error;
  };
}

function tooManyWrong(): Boom.Boom {
  const error = Boom.tooManyRequests('Too many wrong passwords from your address. Try again in six seconds.');
  error.output.headers['Retry-After'] = wrongPasswords.forgivenMs / 1_000;
  return error;
}

function requireThisMachine({ socket, headers: { host } }: IncomingMessage): void {
  const isHere = isLoopback(socket.localAddress) && isLoopback(socket.remoteAddress);
  if (isHere && namesLoopback(host)) return;
  const why = isHere
    ? 'The dashboard accepts only a Host that names this machine, such as localhost or 127.0.0.1.'
    : 'The dashboard can be opened only on the loopback address of its machine.';
  throw Boom.forbidden(`${why} To open it from elsewhere, set ADMIN_TOKEN.`);
}

function namesLoopback(host = ''): boolean {
  const [, name, literal] = hostForm.exec(host) ?? [];
  return name?.toLowerCase() === 'localhost' || isLoopback(name ?? literal);
}

/** Accepts IPv4 addresses in IPv6 form, too. */
function isLoopback(address = ''): boolean {
  const version = isIP(address);
  return version !== 0 && loopback.check(address, version === 4 ? 'ipv4' : 'ipv6');
}

/** Returns the password of a field `Authorization`, or `null` if it has none. */
function passwordIn(authorization: string): string | null {
  const [, encoded] = basic.exec(authorization) ?? [];
  const credentials = Buffer.from(encoded ?? '', 'base64').toString();
  const colon = credentials.indexOf(':');
  return colon === -1 ? null : credentials.slice(colon + 1);
}

/** Digests have one length, so the time of a comparison reveals nothing. */
function digest(text: string): Buffer {
  return hash('sha256', text, 'buffer');
}

/** Counts wrong passwords by network, in one process. */
class WrongPasswords {
  /** When all wrong passwords of a network are forgiven. */
  readonly #forgivenAt = new LRUCache<string, number>({ max: maxNetworks });

  /** Returns whether a network has sent too many. */
  isOver(network: string): boolean {
    const { atOnce, forgivenMs } = wrongPasswords;
    return (this.#forgivenAt.get(network) ?? 0) - Date.now() > (atOnce - 1) * forgivenMs;
  }

  count(network: string): void {
    const from = Math.max(Date.now(), this.#forgivenAt.get(network) ?? 0);
    this.#forgivenAt.set(network, from + wrongPasswords.forgivenMs);
  }
}
