import { expect } from 'chai';
import { readSettings, settingWarnings } from '../../config/settings.ts';

describe('warnings about settings', () => {
  const warnings = (environment: Record<string, string>) => settingWarnings(readSettings(environment));

  const others = ['0.0.0.0', '::', '10.0.0.7', '128.0.0.1', '::2', 'medref.internal', 'localhost.example'];
  for (const host of others) {
    it(`include one if the API listens on ${host} without a public address`, () => {
      const [warning, ...more] = warnings({ API_HOST: host });
      expect(warning)
        .to.include(`API_HOST is ${host}: `)
        .and.to.match(/^BASE_URL is not set, .*\.example\.$/);
      expect(more).to.deep.equal([]);
      expect(warnings({ API_HOST: host, BASE_URL: 'https://medref.example' })).to.deep.equal([]);
      expect(warnings({ API_HOST: host, TRUSTED_PROXIES: '10.0.0.1' })).to.deep.equal([]);
    });
  }

  for (const host of ['127.0.0.1', '127.8.9.10', '::1', '0:0:0:0:0:0:0:1', 'localhost', 'LocalHost']) {
    it(`are none if the API listens on ${host}, which is only this machine`, () => {
      expect(warnings({ API_HOST: host })).to.deep.equal([]);
    });
  }

  it('are none for the defaults', () => {
    expect(warnings({})).to.deep.equal([]);
  });

  it('include READ_FROM if REDIS_URL names one server', () => {
    const READ_FROM = 'replica';
    expect(warnings({ READ_FROM })).to.match(/^READ_FROM is replica, but REDIS_URL names one server/);
    expect(warnings({ READ_FROM, REDIS_URL: 'redis+cluster://h' })).to.deep.equal([]);
    expect(warnings({ READ_FROM, REDIS_URL: 'redis+sentinel://h/m' })).to.deep.equal([]);
    expect(warnings({ READ_FROM: 'master' })).to.deep.equal([]);
  });
});
