import { execFile } from 'node:child_process';
import { randomInt } from 'node:crypto';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { expect } from 'chai';
import { medrefProcess } from '../support/medref.ts';
import { read } from '../support/project-files.ts';
import { startTestRedis, type TestRedis } from '../support/redis-server.ts';
import { whyNoTls } from '../support/upstream-server.ts';
import { connectTo, masterName, startSentinel } from './servers.ts';

// One server each: these tests are about the connection to it.
/** The user of a Sentinel, as docs/REDIS.md shows it. */
const [documented = ''] = /user api on >… resetchannels .*/.exec(read('docs/REDIS.md')) ?? [];

describe(`servers that require a password and TLS${whyNoTls === null ? '' : ` (left out: ${whyNoTls})`}`, function () {
  this.timeout(60_000);
  let folder: string;
  let certificate: string;
  let tls: Record<string, string>;
  const servers: TestRedis[] = [];
  const ends: (() => Promise<void>)[] = [];
  before(async function () {
    if (whyNoTls !== null) this.skip();
    folder = await mkdtemp(join(tmpdir(), 'medref-test-secured-'));
    certificate = join(folder, 'certificate.pem');
    const key = join(folder, 'key.pem');
    await promisify(execFile)('openssl', [
      ...[
        'req',
        '-x509',
        '-newkey',
        'ec',
        '-pkeyopt',
        'ec_paramgen_curve:prime256v1',
        '-nodes',
        '-days',
        '1',
      ],
      ...['-subj', '/CN=localhost', '-addext', 'subjectAltName=DNS:localhost,IP:127.0.0.1'],
      ...['-keyout', key, '-out', certificate],
    ]);
    tls = {
      ...{ 'tls-cert-file': certificate, 'tls-key-file': key, 'tls-ca-cert-file': certificate },
      ...{ 'tls-auth-clients': 'no', 'tls-replication': 'yes' },
    };
  });
  after(async () => {
    await Promise.all(ends.map((end) => end()));
    await Promise.all(servers.map((server) => server.stop()));
    if (folder) await rm(folder, { recursive: true });
  });

  /** Starts a server with two ports: one without TLS for the test itself, and one with TLS. */
  async function startServer(
    settings: Record<string, string>,
  ): Promise<{ server: TestRedis; tlsPort: number }> {
    // This port and the port of the Cluster bus, which is 10,000 higher, are below the system's range for outgoing connections.
    const tlsPort = randomInt(8_100, 9_900);
    const server = await startTestRedis({ settings: { ...tls, ...settings, 'tls-port': String(tlsPort) } });
    servers.push(server);
    const redis = connectTo(server.port);
    await redis.call('ACL', 'SETUSER', 'reader', 'on', '>p@ss', '~*', '&*', '+@all');
    await redis.call('ACL', 'SETUSER', 'default', 'resetpass', '>other');
    redis.disconnect();
    return { server, tlsPort };
  }

  /** Runs `medref status`, whose TLS trusts the certificate. @returns its exit code and stderr */
  async function status(url: string): Promise<readonly [number | null, string]> {
    const settings = { REDIS_URL: url, NODE_EXTRA_CA_CERTS: certificate };
    const { code, stderr } = await medrefProcess(['status'], settings);
    return [code, stderr];
  }

  it('accept connections as a Cluster', async () => {
    const { server, tlsPort } = await startServer({
      ...{ 'cluster-enabled': 'yes', 'cluster-announce-ip': '127.0.0.1', 'tls-cluster': 'yes' },
    });
    const redis = connectTo(server.port, 'other');
    await redis.cluster('ADDSLOTS', ...Array.from({ length: 16_384 }, (_, slot) => slot));
    while (!String(await redis.cluster('INFO')).includes('cluster_state:ok'));
    redis.disconnect();
    expect(await status(`rediss+cluster://reader:p%40ss@localhost:${tlsPort}`)).to.deep.equal([0, '']);
    expect(await status(`redis+cluster://reader:p%40ss@localhost:${server.port}`)).to.deep.equal([0, '']);
    const [code, said] = await status(`redis+cluster://reader:wrong@localhost:${server.port}`);
    expect([code, said]).to.deep.equal([
      1,
      `Redis at localhost:${server.port} cannot be used: Redis does not accept the user or password of REDIS_URL.\n`,
    ]);
  });

  for (const [title, lines] of [
    ['a Sentinel that asks for none of it but TLS', []],
    [
      'a Sentinel that asks for the same user and password',
      [documented.replace('api', 'reader').replace('…', 'p@ss'), 'user default on >other ~* &* +@all'],
    ],
  ] as const) {
    it(`accept connections through ${title}`, async () => {
      const { tlsPort } = await startServer({});
      const sentinel = await startSentinel(join(folder, `${tlsPort}.conf`), {
        ...{ masterPort: tlsPort, quorum: 1 },
        lines: [
          ...lines,
          ...Object.entries(tls).map(([name, value]) => `${name} ${value}`),
          ...[`sentinel auth-user ${masterName} reader`, `sentinel auth-pass ${masterName} p@ss`],
        ],
        hasTls: true,
      });
      ends.push(() => sentinel.child.stop());
      const address = `reader:p%40ss@localhost:${sentinel.tlsPort}/${masterName}`;
      expect(await status(`rediss+sentinel://${address}`)).to.deep.equal([0, '']);
    });
  }
});
