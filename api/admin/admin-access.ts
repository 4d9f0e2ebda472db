// Who may read the admin listener, but for its metrics: who has the token; without one, who is on this machine and asks for
// it by its own name, since a page of another site may have its name lead here (DNS rebinding).

import { hash, timingSafeEqual } from 'node:crypto';
import type { IncomingMessage } from 'node:http';
import { BlockList, isIP } from 'node:net';
import Boom from '@hapi/boom';
import { FailedCredentials } from '../reads/failed-credentials.ts';
import { networkOf } from '../requests/client-address.ts';

const loopback = new BlockList();
loopback.addSubnet('127.0.0.0', 8, 'ipv4');
loopback.addAddress('::1', 'ipv6');

/** A `Host` that is an address or `localhost`, with or without a port. */
const hostForm = /^(?:(localhost|\d{1,3}(?:\.\d{1,3}){3})|\[([0-9a-f:.]+)\])(?::\d{1,5})?$/i;

/** The scheme of RFC 7617 and what stands behind it. */
const basic = /^basic +([A-Za-z0-9+/]+={0,2})$/i;

const challenge = 'Basic realm="medref", charset="UTF-8"';

/** How many wrong passwords a network may send; past that, not even the right one is taken: it could be guessed. */
const wrongPasswordBounds = { atOnce: 10, forgivenMs: 6_000 } as const;

/**
 * Makes what lets a request pass.
 * @param token the password that is asked for, with any user name; `undefined`: only this machine is answered
 * @param onWrong told of the network that sent a password which is not right
 * @returns throws Boom 401 where the password is not right, 429 where too many were not, 403 where nobody may read
 */
export function adminAccess(
  token: string | undefined,
  onWrong: (network: string) => void,
): (request: IncomingMessage) => void {
  if (token === undefined) return requireThisMachine;
  const expected = digest(token);
  const failed = new FailedCredentials(wrongPasswordBounds);
  return ({ socket, headers: { authorization = '' } }) => {
    const network = networkOf(socket.remoteAddress ?? '');
    if (failed.isOver(network)) throw tooManyWrong();
    const sent = passwordIn(authorization);
    if (sent !== null && timingSafeEqual(digest(sent), expected)) return;
    // A browser asks without one first.
    if (authorization !== '') {
      failed.count(network);
      onWrong(network);
    }
    const error = Boom.unauthorized('Give the value of ADMIN_TOKEN as the password, and any user name.');
    error.output.headers['WWW-Authenticate'] = challenge;
    throw error;
  };
}

function tooManyWrong(): Boom.Boom {
  const error = Boom.tooManyRequests(
    'Too many wrong passwords came from this address. Try again in six seconds.',
  );
  error.output.headers['Retry-After'] = wrongPasswordBounds.forgivenMs / 1_000;
  return error;
}

function requireThisMachine({ socket, headers: { host } }: IncomingMessage): void {
  const isHere = isLoopback(socket.localAddress) && isLoopback(socket.remoteAddress);
  if (isHere && namesLoopback(host)) return;
  const why = isHere
    ? 'The dashboard is answered only to a Host that names this machine, such as localhost or 127.0.0.1.'
    : 'The dashboard is answered only on the loopback address of its machine.';
  throw Boom.forbidden(`${why} Set ADMIN_TOKEN to read it by another one, with a password.`);
}

function namesLoopback(host = ''): boolean {
  const [, name, literal] = hostForm.exec(host) ?? [];
  return name?.toLowerCase() === 'localhost' || isLoopback(name ?? literal);
}

/** Also an IPv4 address as an IPv6 listener sees it. */
function isLoopback(address = ''): boolean {
  const version = isIP(address);
  return version !== 0 && loopback.check(address, version === 4 ? 'ipv4' : 'ipv6');
}

/** What a field `Authorization` has behind the first colon of its credentials; `null` where it has none. */
function passwordIn(authorization: string): string | null {
  const [, encoded] = basic.exec(authorization) ?? [];
  const credentials = Buffer.from(encoded ?? '', 'base64').toString();
  const colon = credentials.indexOf(':');
  return colon === -1 ? null : credentials.slice(colon + 1);
}

/** Texts of any length are compared by these, in a time that tells nothing of them. */
function digest(text: string): Buffer {
  return hash('sha256', text, 'buffer');
}
