import { expect } from 'chai';
import { settingDefinitions } from '../../config/definitions.ts';
import { readSettings, SettingsError } from '../../config/settings.ts';

const read = (environment: Record<string, string>) => readSettings(environment);

function errorOf(environment: Record<string, string>): SettingsError {
  try {
    read(environment);
  } catch (error) {
    return error as SettingsError;
  }
  throw new Error('the settings were accepted');
}

describe('settings', () => {
  it('have the defaults of the contract', () => {
    expect(read({})).to.deep.equal({
      redisUrl: 'redis://127.0.0.1:6379',
      keyPrefix: 'medref',
      apiHost: '127.0.0.1',
      apiPort: 3000,
      adminHost: '127.0.0.1',
      adminPort: 3001,
      adminToken: undefined,
      baseUrl: undefined,
      trustedProxies: undefined,
      upstreams: new Map(),
      misspelt: [],
      importCron: '0 3 * * *',
      importTimezone: 'UTC',
      publish: 'auto',
      follow: false,
      maxShrinkPercent: 20,
      maxRejectPercent: 1,
      maxChangePercent: 50,
      keepVersions: 3,
      defaultRate: undefined,
      workers: 1,
      corsOrigins: undefined,
      readFrom: 'master',
      logLevel: 'info',
      webhookUrl: undefined,
      webhookSecret: undefined,
      accessLog: 'errors',
    });
  });

  it('are frozen', () => {
    expect(read({})).to.be.frozen;
  });

  it('count as unset when empty', () => {
    expect(read({ API_PORT: '', PRODUCTS_URL: '', REDIS_URL: '' })).to.deep.equal(read({}));
  });

  it('prefer the token of a collection to the common one', () => {
    const { upstreams } = read({
      ...{ PRODUCTS_URL: 'https://a.test/p', COMPANIES_URL: 'file:///c.json' },
      ...{ UPSTREAM_TOKEN: 'common', COMPANIES_TOKEN: 'own' },
    });
    expect(upstreams.get('products')).to.deep.equal({ url: new URL('https://a.test/p'), token: 'common' });
    expect(upstreams.get('companies')).to.deep.equal({ url: new URL('file:///c.json'), token: 'own' });
  });

  it('remove the trailing slash of a base URL', () => {
    expect(read({ BASE_URL: 'https://medref.test/api/' }).baseUrl).to.equal('https://medref.test/api');
  });

  it('normalize origins', () => {
    const of = (CORS_ORIGINS: string) => read({ CORS_ORIGINS }).corsOrigins;
    expect(of('*')).to.equal('*');
    expect(of('https://Shop.example:443/, http://localhost:8080')).to.deep.equal([
      'https://shop.example',
      'http://localhost:8080',
    ]);
  });

  const bad: Record<string, readonly string[]> = {
    REDIS_URL: [
      ...['127.0.0.1:6379', 'http://127.0.0.1', 'redis://host:port', 'redis://h/db', 'redis://h?x=1'],
      ...['redis+sentinel://h:1', 'redis+cluster://h:1/0'],
    ],
    READ_FROM: ['slave', 'Replica'],
    KEY_PREFIX: ['a:b', 'a b', '{a}', 'ü'],
    API_HOST: ['not a host', 'http://x', '127.0.0.1:80'],
    API_PORT: ['abc', '-1', '65536', '1.5', '0x50', ' '],
    ADMIN_HOST: ['a b'],
    ADMIN_PORT: ['x'],
    ADMIN_TOKEN: ['a b', 'ü'],
    BASE_URL: [
      'https://medref.test/api?',
      'https://medref.test/#',
      'medref.test',
      'ftp://medref.test',
      'https://user:secret@medref.test',
      'https://medref.test/?a=1',
    ],
    TRUSTED_PROXIES: [
      ...[
        'proxy.example',
        '10.0.0.0/33',
        '::/129',
        '10.0.0.1,',
        ',',
        '10.0.0.1 10.0.0.2',
        '10.0.0',
        '::1%lo',
        '10.0.0.0/',
      ],
    ],
    PRODUCTS_URL: [
      'products.json',
      'file://data/products.json',
      'ftp://a.test/p',
      'https://u:p@a.test/p',
      'https://a.test/p#x',
    ],
    COMPANIES_URL: ['/tmp/companies.json'],
    PRODUCTS_TOKEN: ['two words', 'line\nbreak', 'ünïcode'],
    COMPANIES_TOKEN: [' '],
    UPSTREAM_TOKEN: ['a b'],
    IMPORT_CRON: ['every day', '* * * *', '0 0 3 * * *', '60 3 * * *', '@daily'],
    IMPORT_TIMEZONE: ['Mars/Olympus', 'UTC+3:00:00:00'],
    PUBLISH: ['yes', 'MANUAL'],
    FOLLOW: ['yes', '1', 'TRUE'],
    MAX_SHRINK_PERCENT: ['-1', '101', 'some', '20%', 'Infinity', 'NaN'],
    MAX_REJECT_PERCENT: ['-0.1', '100.5', ''.padEnd(3, ' ')],
    MAX_CHANGE_PERCENT: ['-1', '100.1', 'half'],
    KEEP_VERSIONS: ['1', '0', '2.5', '1001', 'all'],
    DEFAULT_RATE: ['10', '0/s', '1.5/s', '-1/s', '10/m', '10/s ', '1000000000/s'],
    CORS_ORIGINS: [
      ...['shop.example', 'https://a.test/shop', 'https://a.test?', 'https://a:b@a.test', 'file:///a'],
      ...['null', 'https://a.test,', 'https://a.test,*', 'https://a.test https://b.test', 'ftp://a.test'],
    ],
    WORKERS: ['0', '257', '1.5', 'all'],
    LOG_LEVEL: ['verbose', 'INFO'],
    WEBHOOK_URL: ['hook.test', 'file:///hook', 'https://u:p@hook.test/', 'https://hook.test/#x'],
    WEBHOOK_SECRET: ['two words', ' '],
    ACCESS_LOG: ['on', '4xx'],
  };

  for (const [name, values] of Object.entries(bad)) {
    for (const value of values) {
      it(`refuse ${name}=${JSON.stringify(value)} in one line with name, value and accepted values`, () => {
        const { message } = errorOf({ [name]: value });
        const definition = settingDefinitions.find((it) => it.name === name);
        expect(message.split('\n')).to.have.length(1);
        expect(message.startsWith(`${name} is `), message).to.equal(true);
        expect(message).to.include(definition?.accepts);
        if (definition?.secret) expect(message).to.include('(not shown)');
        else if (!/[@?]/.test(value)) expect(message).to.include(JSON.stringify(value));
      });
    }
  }

  it('each have a refused value above', () => {
    for (const { name } of settingDefinitions) {
      const refused = (bad[name] ?? []).filter((value) => {
        try {
          return !read({ [name]: value });
        } catch (error) {
          return error instanceof SettingsError;
        }
      });
      expect(refused, name).to.deep.equal(bad[name]).and.not.to.be.empty;
    }
  });

  it('are all reported at once, one per line', () => {
    const { message } = errorOf({ API_PORT: 'x', KEEP_VERSIONS: '1', ADMIN_TOKEN: 'a b', LOG_LEVEL: 'info' });
    expect(message.split('\n').map((line) => line.split(' is ')[0])).to.deep.equal([
      ...['API_PORT', 'ADMIN_TOKEN', 'KEEP_VERSIONS'],
    ]);
    const both = errorOf({ API_PORT: '3001', KEEP_VERSIONS: '1' }).message.split('\n');
    expect(both.map((line) => line.split(' is ')[0])).to.deep.equal(['KEEP_VERSIONS', 'ADMIN_PORT']);
  });

  describe('refuse one port for both listeners', () => {
    const same: Record<string, string>[] = [
      { API_PORT: '3001' },
      { ADMIN_PORT: '3000' },
      { API_PORT: '8080', ADMIN_PORT: '8080', API_HOST: '0.0.0.0' },
      { API_PORT: '8080', ADMIN_PORT: '8080', ADMIN_HOST: '::', API_HOST: '10.0.0.1' },
      { API_PORT: '8080', ADMIN_PORT: '8080', API_HOST: 'LOCALHOST', ADMIN_HOST: '127.0.0.1' },
      { API_PORT: '8080', ADMIN_PORT: '8080', API_HOST: 'api.internal', ADMIN_HOST: 'api.internal' },
    ];
    for (const settings of same)
      it(JSON.stringify(settings), () => {
        const { message } = errorOf(settings);
        const { API_HOST: host = '127.0.0.1', ADMIN_HOST: adminHost = '127.0.0.1' } = settings;
        const port = settings['API_PORT'] ?? settings['ADMIN_PORT'];
        expect(message).to.equal(
          `ADMIN_PORT is ${port}, the same as API_PORT; the listeners at ADMIN_HOST ${adminHost} and API_HOST ${host} need different ports.`,
        );
      });

    it('accept it at two addresses, and any free port for both', () => {
      for (const settings of [
        { API_PORT: '8080', ADMIN_PORT: '8080', API_HOST: '10.0.0.1' },
        { API_PORT: '0', ADMIN_PORT: '0' },
      ])
        expect(() => read(settings)).not.to.throw();
    });
  });

  it('never show a secret: neither a token nor a password in a URL', () => {
    expect(errorOf({ UPSTREAM_TOKEN: 'my secret' }).message).not.to.include('secret');
    expect(errorOf({ REDIS_URL: 'http://user:secret@h' }).message).not.to.include('secret');
    expect(errorOf({ BASE_URL: 'https://user:secret@medref.test' }).message).not.to.include('secret');
    expect(errorOf({ PRODUCTS_URL: 'https://:secret@a.test/' }).message).not.to.include('secret');
    expect(errorOf({ PRODUCTS_URL: 'ftp://secret@a.test/' }).message).not.to.include('secret');
    expect(errorOf({ PRODUCTS_URL: 'https://a.test/p?key=secret#x' }).message).not.to.include('secret');
    expect(errorOf({ REDIS_URL: 'redis:user:secret@h:1:2' }).message).not.to.include('secret');
    expect(errorOf({ REDIS_URL: 'redis+sentinel://u:secret@h:1,g' }).message).not.to.include('secret');
    const withAt = errorOf({ REDIS_URL: 'redis://user:p@rt@secret@h/db' }).message;
    expect(withAt, 'a password with an @').to.include('"redis://***@h/db"');
  });

  it('accept proxies as addresses and ranges of both families', () => {
    const { trustedProxies } = read({ TRUSTED_PROXIES: '127.0.0.1, 10.0.0.0/8 ,fd00::/8,2001:db8::1' });
    const trusted = (address: string) =>
      trustedProxies?.check(address, address.includes(':') ? 'ipv6' : 'ipv4');
    expect(['127.0.0.1', '10.9.9.9', 'fd12::1', '2001:db8::1'].map(trusted)).to.deep.equal([
      true,
      true,
      true,
      true,
    ]);
    expect(['127.0.0.2', '11.0.0.1', 'fe80::1', '2001:db8::2'].map(trusted)).not.to.include(true);
  });

  const good: Record<string, readonly string[]> = {
    REDIS_URL: [
      ...['redis://h', 'rediss://user:pass@h:6380/2', 'redis://[::1]:6379'],
      ...['redis+sentinel://user:pass@h:1,[::1]:2/master', 'rediss+cluster://h:1,g'],
    ],
    API_HOST: ['0.0.0.0', '::1', 'localhost', 'api-1.internal'],
    API_PORT: ['0', '65535'],
    PRODUCTS_URL: ['https://a.test/p?key=1', 'file:///data/p.json.gz', 'http://localhost:8080/'],
    TRUSTED_PROXIES: ['0.0.0.0/0', '::1,127.0.0.1/32', '::/0'],
    IMPORT_CRON: ['*/5 * * * *', '0 3 * * 1-5', '15 2,14 1 * *'],
    IMPORT_TIMEZONE: ['Europe/Istanbul', 'UTC'],
    PUBLISH: ['auto', 'manual'],
    FOLLOW: ['true', 'false'],
    MAX_SHRINK_PERCENT: ['0', '100', '12.5'],
    MAX_CHANGE_PERCENT: ['0', '100', '0.5'],
    KEEP_VERSIONS: ['2', '1000'],
    DEFAULT_RATE: ['1/s', '999999999/s'],
    WORKERS: ['1', '256', 'auto'],
    READ_FROM: ['master', 'replica'],
    LOG_LEVEL: ['silent', 'debug'],
    WEBHOOK_URL: ['http://127.0.0.1:8080/', 'https://hook.test/services/T0/B0?key=1'],
    ACCESS_LOG: ['off', 'all'],
  };
  for (const [name, values] of Object.entries(good)) {
    it(`parse ${name} as ${values.join(', ')}`, () => {
      for (const value of values) expect(() => read({ [name]: value }), value).not.to.throw();
    });
  }
});
