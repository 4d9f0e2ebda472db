// Reads the responses in the bytes of a connection strictly, and compares each with the contract.

import { STATUS_CODES } from 'node:http';

/** One response. */
export interface Responder {
  readonly status: number;
  readonly headers: ReadonlyMap<string, string>;
  readonly body: Buffer;
  /** Whether it has no body because it is a response to HEAD. */
  readonly isHead: boolean;
}

/**
 * Reads the responses in the bytes of a connection.
 * @param methods of the requests; `null`: unknown, so a response without its body may be one to HEAD
 * @returns the responses, and a sentence on why the bytes are not valid responses, or `null`
 */
export function readAnswers(
  bytes: Buffer,
  methods: readonly string[] | null,
): { answers: Responder[]; fault: string | null } {
  const answers: Responder[] = [];
  for (let at = 0; at < bytes.length; ) {
    const end = bytes.indexOf('\r\n\r\n', at);
    const [line = '', ...fields] = bytes.toString('latin1', at, Math.max(end, at)).split('\r\n');
    const [, code, phrase] = /^HTTP\/1\.1 (\d{3}) (.+)$/.exec(line) ?? [];
    const status = Number(code);
    if (end === -1 || code === undefined || STATUS_CODES[status] !== phrase)
      return { answers, fault: `No answer: ${JSON.stringify(bytes.toString('latin1', at, at + 200))}.` };
    at = end + 4;
    if (status === 100) continue;
    const headers = new Map(
      fields.map((it) => [it.slice(0, it.indexOf(':')).toLowerCase(), it.slice(it.indexOf(':') + 2)]),
    );
    const isHead = methods === null ? isWithoutBody(bytes, at) : methods[answers.length] === 'HEAD';
    const hasBody = !isHead && status !== 304 && status !== 204;
    const body = hasBody ? bodyAt(bytes, at, headers) : { content: Buffer.alloc(0), end: at };
    if (body === null) return { answers, fault: `An answer of ${status} is truncated.` };
    answers.push({ status, headers, isHead, body: body.content });
    at = body.end;
  }
  return { answers, fault: null };
}

/** Returns whether another response, or nothing, follows at the place of a body. */
function isWithoutBody(bytes: Buffer, at: number): boolean {
  return at === bytes.length || bytes.toString('latin1', at, at + 9) === 'HTTP/1.1 ';
}

function bodyAt(
  bytes: Buffer,
  from: number,
  headers: ReadonlyMap<string, string>,
): { content: Buffer; end: number } | null {
  if (headers.get('transfer-encoding') !== 'chunked') {
    const end = from + Number(headers.get('content-length') ?? 0);
    return end > bytes.length ? null : { content: bytes.subarray(from, end), end };
  }
  const parts: Buffer[] = [];
  for (let at = from; ; ) {
    const lineEnd = bytes.indexOf('\r\n', at);
    const size = Number.parseInt(bytes.toString('latin1', at, lineEnd), 16);
    const next = lineEnd + 2 + size + 2;
    if (lineEnd === -1 || Number.isNaN(size) || next > bytes.length) return null;
    if (size === 0) return { content: Buffer.concat(parts), end: next };
    parts.push(bytes.subarray(lineEnd + 2, lineEnd + 2 + size));
    at = next;
  }
}

/** Expected statuses of 5xx: nothing is published, or overload; and statuses that HTTP requires. */
const meant = new Set([501, 503, 505]);

/** Returns the faults of a response as sentences. @param gunzip decodes a gzip body */
export function faultsOf(response: Responder, gunzip: (bytes: Buffer) => Buffer): string[] {
  const { status, headers, isHead } = response;
  const faults: string[] = [];
  if (status >= 500 && !meant.has(status)) faults.push(`An answer was ${status}.`);
  if (status === 503 && !headers.has('retry-after')) faults.push('A 503 had no Retry-After.');
  for (const name of ['x-request-id', 'x-content-type-options', 'referrer-policy'])
    if (!headers.has(name)) faults.push(`An answer of ${status} had no ${name}.`);
  if (isHead || status === 304 || status === 204) return faults;
  const type = headers.get('content-type') ?? '';
  if (status >= 400) return [...faults, ...errorFaults(response, type)];
  const isEncoded = headers.get('content-encoding') === 'gzip';
  const body = isEncoded ? gunzip(response.body) : response.body;
  if (type === 'application/json' && !isEnvelope(body)) faults.push(`${status} outside the envelope.`);
  return faults;
}

function errorFaults({ status, body }: Responder, type: string): string[] {
  if (type !== 'application/json') return [`An answer of ${status} was ${type || 'of no type'}.`];
  const { success, data, ...more } = parsed(body) as Record<string, unknown>;
  const { name, message, code, status: reported, ...others } = (data ?? {}) as Record<string, unknown>;
  const isRight =
    success === false &&
    name === STATUS_CODES[status] &&
    typeof message === 'string' &&
    /^\S.*[.!?]$/s.test(message) &&
    code === 0 &&
    reported === status &&
    Object.keys({ ...more, ...others }).length === 0;
  return isRight ? [] : [`An answer of ${status} had the body ${body.toString().slice(0, 200)}.`];
}

/** Returns whether a body is a list or a single record, or the description of the API, which has no envelope. */
function isEnvelope(body: Buffer): boolean {
  const content = parsed(body);
  const names = Object.keys(content).join();
  if (names === 'data,success' || names === 'data,_links,_meta,success') return content['success'] === true;
  return content['openapi'] === '3.1.0' || names.startsWith('openapi,');
}

function parsed(body: Buffer): Record<string, unknown> {
  try {
    return JSON.parse(body.toString());
  } catch {
    return {};
  }
}
