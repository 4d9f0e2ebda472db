// A host, as requests and proxies name it.

/** RFC 3986, section 3.2.2 and 3.2.3: a registered name or IPv4 address, or an IPv6 literal, then a port. */
const hostAndPort = /^(?:[A-Za-z0-9._~!$&'()*+,;=%-]+|\[[0-9A-Fa-f:.]+\])(?::[0-9]{0,5})?$/;

/** The longest host: a name (RFC 1035, section 2.3.4), with a dot at its end and a port. */
const maxHostLength = 253 + '.:65535'.length;

/** Whether a `Host` field has the form of a host, with or without a port. */
export function isHost(text: string): boolean {
  if (text === lastHost) return true;
  if (text.length > maxHostLength || !hostAndPort.test(text) || !URL.canParse(`http://${text}`)) return false;
  lastHost = text;
  return true;
}

/** The host that was asked for last: most often it is the next one too. */
let lastHost: string | undefined;
