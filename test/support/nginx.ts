// Starts a real nginx with deploy/nginx/medref.conf and a certificate on a loopback port, in front of an API's port.

import { execFile } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import type { IncomingMessage } from 'node:http';
import { connect, type IncomingHttpHeaders } from 'node:http2';
import { request } from 'node:https';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { onPath } from '../../bench/installed.ts';
import { startChild } from '../../demo/child.ts';
import { freePort } from './ports.ts';
import { awaitListener } from './wire.ts';

const run = promisify(execFile);
const configuration = fileURLToPath(new URL('../../deploy/nginx/medref.conf', import.meta.url));

/** The reason why nginx cannot start here, or `null`. */
export const whyNoNginx =
  ['nginx', 'openssl']
    .filter((it) => onPath(it) === undefined)
    .map((it) => `${it} is not installed`)
    .join(', ') || null;

/** The host name in the file, by which clients know the service. */
export const publicName = 'medref.example';

/** A running nginx. */
export interface TestProxy {
  /** Sends a request over TLS, as a client that trusts the certificate; the body of the response is not read yet. */
  open(
    path: string,
    options?: { method?: string; headers?: Record<string, string> },
  ): Promise<IncomingMessage>;
  /** Sends requests over HTTP/2, one after the other on one connection; returns header fields and body of each response. */
  openAll(paths: readonly string[], headers: Record<string, string>): Promise<readonly Http2Answer[]>;
  stop(): Promise<void>;
}

/** A response over HTTP/2. */
export interface Http2Answer {
  readonly headers: IncomingHttpHeaders & { readonly ':status'?: number };
  readonly text: string;
}

/** Returns a port for an nginx that starts later, so that the API can get its public address first. */
export { freePort };

/** Starts nginx with the file, in which only ports and certificate are changed; the caller calls `stop`. */
export async function startProxy({
  port,
  apiPort,
  further = [],
}: {
  port: number;
  apiPort: number;
  /** Ports of more API processes. */
  further?: readonly number[];
}): Promise<TestProxy> {
  const folder = await mkdtemp(join(tmpdir(), 'medref-test-nginx-'));
  const key = join(folder, 'key.pem');
  const certificate = join(folder, 'certificate.pem');
  await run(onPath('openssl') as string, [
    ...['req', '-x509', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes', '-days', '1'],
    ...['-subj', `/CN=${publicName}`, '-addext', `subjectAltName=DNS:${publicName}`],
    ...['-keyout', key, '-out', certificate],
  ]);
  const site = replaceEach(await readFile(configuration, 'utf8'), [
    [
      '    server 127.0.0.1:3000 ',
      [apiPort, ...further].map((it) => `    server 127.0.0.1:${it} `).join('fail_timeout=1s;\n'),
    ],
    ['    listen 443 ssl http2;', `    listen 127.0.0.1:${port} ssl http2;`],
    ['/etc/medref/tls/fullchain.pem', certificate],
    ['/etc/medref/tls/privkey.pem', key],
  ]);
  await writeFile(join(folder, 'medref.conf'), site);
  await writeFile(join(folder, 'nginx.conf'), mainConfiguration(folder));
  const child = await startChild(onPath('nginx') as string, [
    ...['-c', join(folder, 'nginx.conf'), '-p', folder, '-e', 'stderr'],
  ]);
  const stop = async () => {
    await child.stop();
    await rm(folder, { recursive: true, force: true });
  };
  try {
    await Promise.race([
      awaitListener(port),
      child.ended.then(() => {
        throw new Error(`nginx did not start: ${child.output.stderr}`);
      }),
    ]);
  } catch (error) {
    await stop();
    throw error;
  }
  const ca = await readFile(certificate);
  return {
    stop,
    async openAll(paths, headers) {
      const session = connect(`https://127.0.0.1:${port}`, { ca, servername: publicName });
      const responses: Http2Answer[] = [];
      try {
        for (const path of paths) {
          const stream = session.request({ ':path': path, ':authority': publicName, ...headers });
          const [found] = (await once(stream, 'response')) as [Http2Answer['headers']];
          responses.push({ headers: found, text: await text(stream) });
        }
      } finally {
        session.destroy();
      }
      return responses;
    },
    open: (path, { method = 'GET', headers = {} } = {}) =>
      new Promise((resolve, reject) => {
        const address = { host: '127.0.0.1', port, servername: publicName, ca, agent: false };
        const asked = request(
          { ...address, path, method, headers: { host: publicName, ...headers } },
          resolve,
        );
        asked.on('error', reject);
        asked.end();
      }),
  };
}

/** Returns the main configuration, which includes the file; some main configurations switch gzip on. */
function mainConfiguration(folder: string): string {
  const temporary = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi'];
  return `
    ${process.getuid?.() === 0 ? 'user root;' : ''}
    daemon off;
    worker_processes 1;
    error_log stderr error;
    pid ${folder}/pid;
    events { worker_connections 64; }
    http {
      access_log off;
      gzip on;
      gzip_types *;
      gzip_proxied any;
      ${temporary.map((name) => `${name}_temp_path ${folder}/${name};`).join('\n')}
      include ${folder}/medref.conf;
    }`;
}

function replaceEach(text: string, pairs: readonly (readonly [string, string])[]): string {
  return pairs.reduce((result, [from, to]) => {
    if (!result.includes(from)) throw new Error(`${configuration} has no ${JSON.stringify(from)}.`);
    return result.replace(from, to);
  }, text);
}
