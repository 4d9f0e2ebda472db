// Tests that commands, the log, responses, metrics and pages show no secret that a service was given.

import { existsSync, readFileSync } from 'node:fs';
import { expect } from 'chai';
import { connectForWriting } from '../../shared/redis/connections.ts';
import { makeKeyText } from '../../shared/store/api-keys.ts';
import { beginMedref, medref, startMedref, withoutSecrets } from '../support/medref.ts';
import { product } from '../support/records.ts';
import { useRedis } from '../support/redis-server.ts';
import { refusing, sending, upstreamServers } from '../support/upstream-server.ts';

describe('secrets', function () {
  this.timeout(60_000);
  const server = useRedis();
  const start = upstreamServers();

  const secrets = {
    ...{ redis: 'redis-pass-5f1c', upstream: 'upstream-token-77aa', companies: 'companies-token-9b2e' },
    ...{
      admin: 'admin-token-c0de',
      hook: 'hook-path-31d4',
      signing: 'webhook-secret-e8f0',
      query: 'query-secret-60ab',
    },
  };
  const printed: string[] = [];

  /** Records displayed texts and their source. */
  function shown(where: string, ...texts: readonly string[]): void {
    for (const text of texts) printed.push(`${where}: ${text}`);
  }

  it('never appear in output, logs, responses, metrics or pages, except a new key', async () => {
    const redis = await connectForWriting(server().url);
    await redis.call('ACL', 'SETUSER', 'boss', 'on', `>${secrets.redis}`, '~*', '&*', '+@all');
    redis.disconnect();
    const upstream = await start(sending(JSON.stringify([product(1), { product: 'bad' }])));
    const broken = await start(refusing(500));
    const settings = {
      REDIS_URL: server().url.replace('://', `://boss:${secrets.redis}@`),
      PRODUCTS_URL: upstream.url(`/list.json?key=${secrets.query}`).href,
      COMPANIES_URL: broken.url(`/list.json?key=${secrets.query}`).href,
      ...{ UPSTREAM_TOKEN: secrets.upstream, COMPANIES_TOKEN: secrets.companies, ADMIN_TOKEN: secrets.admin },
      ...{ WEBHOOK_URL: broken.url(`/${secrets.hook}`).href, WEBHOOK_SECRET: secrets.signing },
      ...{ MAX_REJECT_PERCENT: '100', LOG_LEVEL: 'trace', ACCESS_LOG: 'all' },
    };
    const made = await medref(['keys', 'create', '--client', 'a', '--json'], settings);
    const { key, id } = made.json<{ key: string; id: string }>();
    const known = [...Object.values(secrets), key];
    shown('keys create', made.stderr, made.stdout.replace(key, ''));
    for (const args of [
      ...[
        ['import', '--json'],
        ['import', 'products', '--force'],
        ['status'],
        ['verify'],
        ['rejects', 'products'],
      ],
      ...[
        ['versions', 'products'],
        ['diff', 'products'],
        ['rollback', 'products'],
        ['keys', 'list'],
        ['keys', 'revoke', 'x'],
      ],
    ]) {
      const { stdout, stderr } = await medref(args, settings);
      shown(args.join(' '), stdout, stderr);
    }
    for (const [name, value] of [
      ['REDIS_URL', `redis://boss:${secrets.redis}@127.0.0.1:1`],
      ['REDIS_URL', `http://boss:${secrets.redis}@h`],
      ['WEBHOOK_URL', `ftp://h/${secrets.hook}`],
      ['WEBHOOK_SECRET', `${secrets.signing} x`],
      ['ADMIN_TOKEN', `${secrets.admin} x`],
      ['UPSTREAM_TOKEN', `${secrets.upstream} x`],
    ] as const) {
      const { stdout, stderr } = await medref(['status'], { ...settings, [name]: value });
      shown(`status with a bad ${name}`, stdout, stderr);
    }

    const api = beginMedref(['serve', '--json'], { ...settings, API_PORT: '0' });
    const [, address = ''] = await api.line(/"address":"([^"]+)"/);
    const [, admin = ''] = /"address":"([^"]+)","msg":"The admin listener/.exec(api.stderr.text) ?? [];
    const basic = `Basic ${Buffer.from(`any:${secrets.admin}`).toString('base64')}`;
    for (const [url, authorization] of [
      ...['/products', `/products?key=${key}`, `/${key}`, '/nothing', '/companies'].map((it) => [
        address + it,
        `Bearer ${key}`,
      ]),
      ...['/products', '/health/ready', '/openapi.json'].map((it) => [address + it, `Bearer ${key}x`]),
      ...['/metrics', '/', '/imports', '/keys', '/rejects', '/none'].map((it) => [admin + it, basic]),
      [`${admin}/`, `Basic ${Buffer.from(`any:${secrets.admin}x`).toString('base64')}`],
    ] as [string, string][]) {
      const response = await fetch(url, { headers: { authorization } });
      // Text that a client has sent is shown to that client alone.
      const text = (await response.text()).replaceAll(url.slice(address.length + 1), '');
      shown(url.replaceAll(key, '…'), text, JSON.stringify([...response.headers]));
    }
    const { stdout, stderr } = await api.stop();
    shown('serve', stdout, stderr);

    const running = startMedref(['status'], settings);
    const title = `/proc/${running.process.pid}/cmdline`; // Only Linux has this file.
    if (existsSync(title)) shown('the title of a process', readFileSync(title, 'latin1'));
    await running.ended;
    expect(printed.length).to.be.above(50);
    expect(printed.join('\n')).to.include(id).and.to.include('medref_http_requests_total');
    for (const secret of known) {
      const found = printed.filter((it) => it.includes(secret) || it.includes(encodeURIComponent(secret)));
      expect(found, `${secret} is shown`).to.deep.equal([]);
    }
    expect(
      broken.requests.some(({ url }) => url === `/${secrets.hook}`),
      'the webhook received a notice',
    ).to.equal(true);
    expect(upstream.requests[0]?.headers.authorization).to.equal(`Bearer ${secrets.upstream}`);
  });

  it('are searched in the output of all commands in all tests', () => {
    const settings = {
      REDIS_URL: 'redis://api:redis-password@h',
      PRODUCTS_URL: 'https://h/list?query=word',
      ...{ WEBHOOK_URL: 'https://h/hook-path', ADMIN_TOKEN: 'admin-token', WEBHOOK_SECRET: 'hook-secret' },
    };
    const look = (stderr: string, stdout = '', args = ['status']) =>
      withoutSecrets(args, settings, { stdout, stderr });
    for (const printed of ['redis-password', 'query=word', '/hook-path', 'admin-token', 'hook-secret']) {
      expect(() => look(`x ${printed}`), printed).to.throw('medref status has printed what is secret of ');
      expect(() => look('', `x ${printed}`), printed).to.throw();
    }
    const key = makeKeyText();
    expect(() => look('', key, ['keys', 'create'])).not.to.throw();
    for (const it of [() => look('', key), () => look(key, '', ['keys', 'create'])])
      expect(it).to.throw('has printed a key.');
    expect(look('https://h/list', 'redis://api@h')).to.have.property('stdout', 'redis://api@h');
  });
});
