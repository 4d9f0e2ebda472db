// Parsers of settings. Each returns the value of a text, or throws if the setting does not accept it.

import { BlockList, isIP } from 'node:net';

/** Returns a parser for texts that match a pattern. */
export function matching(pattern: RegExp): (text: string) => string {
  return (text) => {
    if (pattern.test(text)) return text;
    throw new Error('not such a text');
  };
}

/** Parses a credential: visible ASCII, which an HTTP header can carry. */
export const token = matching(/^[\x21-\x7e]+$/);

/** Returns a parser for some words. */
export function oneOf<const Word extends string>(...words: readonly Word[]): (text: string) => Word {
  return (text) => {
    const found = words.find((word) => word === text);
    if (found !== undefined) return found;
    throw new Error('not one of the words');
  };
}

/** Returns a parser for the integers of a range. */
export function integer(least: number, most: number): (text: string) => number {
  return (text) => {
    const value = /^[0-9]{1,15}$/.test(text) ? Number(text) : Number.NaN;
    if (value >= least && value <= most) return value;
    throw new Error('not such an integer');
  };
}

/** Parses a percentage from 0 to 100. */
export function percent(text: string): number {
  const value = /^[0-9]{1,3}(?:\.[0-9]{1,15})?$/.test(text) ? Number(text) : Number.NaN;
  if (value <= 100) return value;
  throw new Error('not a percentage');
}

const hostName = /^[a-z\d](?:[a-z\d-]{0,61}[a-z\d])?(?:\.[a-z\d](?:[a-z\d-]{0,61}[a-z\d])?)*$/i;

/** Parses a host name or an IP address, which a server can listen on. */
export function host(text: string): string {
  const isName = hostName.test(text) && !/(?:^|\.)\d+$/.test(text);
  if (isName || (isIP(text) !== 0 && !text.includes('%'))) return text;
  throw new Error('not a host');
}

/** Parses IP addresses and CIDR ranges, separated by commas. */
export function addressList(text: string): BlockList {
  const list = new BlockList();
  for (const item of text.split(',')) {
    const [, address = '', digits] = /^ *([\dA-Fa-f.:]+)(?:\/(\d{1,3}))? *$/.exec(item) ?? [];
    const version = isIP(address);
    const bits = version === 4 ? 32 : 128;
    const length = digits === undefined ? bits : Number(digits);
    if (version === 0 || length > bits) throw new Error('not an address or a range');
    list.addSubnet(address, length, version === 4 ? 'ipv4' : 'ipv6');
  }
  return list;
}

/** Parses a web origin, and returns its standard form. */
export function originOf(text: string): string {
  const { protocol, origin, href } = new URL(text.trim());
  if (!/^https?:$/.test(protocol) || href !== `${origin}/`) throw new Error('not an origin');
  return origin;
}

/** Parses a URL with one of these protocols, without credentials or a fragment. A file URL has no host. */
export function urlOf(text: string, protocols: readonly string[]): URL {
  const url = new URL(text);
  const hasRightHost = (url.protocol === 'file:') === (url.host === '');
  const isPlain = url.username === '' && url.password === '' && url.hash === '' && !/[?#]$/.test(url.href);
  if (!protocols.includes(url.protocol) || !hasRightHost || !isPlain) throw new Error('not such a URL');
  return url;
}
