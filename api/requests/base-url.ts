// What the links of an answer begin with: the setting, or else the address by which the client reached us.

import type { Request } from '@hapi/hapi';
import { ForwardedRequest } from './forwarded.ts';

/** The base URL of a request, without a trailing slash. */
export function baseUrlOf({ raw, headers, server }: Request, setting: string | undefined): string {
  if (setting !== undefined) return setting;
  const { scheme, host } = raw.req instanceof ForwardedRequest ? raw.req.sender : direct;
  return `${scheme}://${host ?? headers['host'] ?? `${server.info.host}:${server.info.port}`}`;
}

/** Of a request that came by no proxy, or by one that is not believed. */
const direct = { scheme: 'http', host: undefined };
