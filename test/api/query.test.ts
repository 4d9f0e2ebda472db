// Tests strict parameters: a malformed parameter is refused, and the message names it and its accepted values.

import { expect } from 'chai';
import { companies as companyCollection } from '../../shared/collections/companies.ts';
import { useApi } from '../support/api.ts';
import { importRecords } from '../support/importing.ts';
import { companies } from '../support/records.ts';
import { useRedis } from '../support/redis-server.ts';
import { exchange, send } from '../support/wire.ts';

const takes = 'it accepts a whole number from 1 to 9007199254740991.';

/** Zero, values above 2^53−1, and values with other characters than the digits 0-9. */
const notCounts: [what: string, value: string][] = [
  ['zero', '0'],
  ['zeros', '000'],
  ['a minus', '-1'],
  ['a plus, which stands for a space', '+1'],
  ['an encoded plus', '%2B1'],
  ['a decimal point', '1.5'],
  ['a whole decimal', '1.0'],
  ['a trailing point', '1.'],
  ['a comma', '1,000'],
  ['an underscore', '1_000'],
  ['an exponent', '1e2'],
  ['a hexadecimal', '0x10'],
  ['a big integer', '1n'],
  ['letters', 'abc'],
  ['NaN', 'NaN'],
  ['Infinity', 'Infinity'],
  ['null', 'null'],
  ['a space', '%20'],
  ['a space before', '%201'],
  ['a space after', '1%20'],
  ['a plus after', '1+'],
  ['a tab', '%091'],
  ['a line break after', '1%0A'],
  ['a zero byte', '1%00'],
  ['full-width digits', '%EF%BC%91'],
  ['Arabic digits', '%D9%A1'],
  ['Devanagari digits', '%E0%A5%A7'],
  ['a superscript', '%C2%B2'],
  ['a non-breaking space', '1%C2%A0'],
  ['a second equals sign', '=1'],
  ['another value behind', '1=1'],
  ['a question mark', '1?page=2'],
  ['a semicolon', '1;page=2'],
  ['a list', '1,2'],
  ['brackets', '[1]'],
  ['2^53', '9007199254740992'],
  ['2^53 + 1, which would be rounded', '9007199254740993'],
  ['a number of 400 digits', '9'.repeat(400)],
];

describe('parameters', () => {
  const redis = useRedis();
  const api = useApi(redis);
  before(() => importRecords(companies(3), companyCollection, { redisUrl: redis().url }));

  async function refusal(path: string): Promise<string> {
    const { status, headers, body } = await send(api(), path);
    expect(status, body.toString()).to.equal(400);
    expect(headers['content-type']).to.equal('application/json');
    const { message } = (JSON.parse(body.toString()) as { data: { message: string } }).data;
    expect(message).to.match(/^The parameter .*\.$/s);
    expect(message.length).to.be.below(250);
    return message;
  }

  for (const name of ['page', 'per-page']) {
    for (const [what, value] of notCounts) {
      it(`rejects ${what} as ${name}, with the name and accepted values`, async () => {
        const message = await refusal(`/companies?${name}=${value}`);
        expect(message).to.include(`The parameter ${name} is "`).and.include(takes);
      });
    }

    for (const value of ['%', '%1', '%zz', '1%', '%FF', '%C3', '%C0%B1', '%ED%A0%80', '%F4%90%80%80']) {
      it(`rejects ${value} as ${name}, which is not percent-encoded UTF-8`, async () => {
        expect(await refusal(`/companies?${name}=${value}`)).to.equal(
          `The parameter ${name} is not percent-encoded UTF-8; ${takes}`,
        );
      });
    }

    for (const query of [`${name}=`, name]) {
      it(`rejects ?${query}: ${name} is empty`, async () => {
        expect(await refusal(`/companies?${query}`)).to.match(
          new RegExp(`^The parameter ${name} is empty; it accepts a whole number`),
        );
      });
    }

    for (const query of [
      `${name}=1&${name}=2`,
      `${name}=1&${name}=1`,
      `${name}=1&${name}`,
      `${name}=1&${name.replace('p', '%70')}=1`,
    ]) {
      it(`rejects ?${query}: ${name} is repeated`, async () => {
        expect(await refusal(`/companies?${query}`)).to.equal(
          `The parameter ${name} is given twice; ${takes}`,
        );
      });
    }

    for (const value of ['1', '01', '00000000000000000000001', '9007199254740991', '%31']) {
      it(`accepts ${value} as ${name}`, async () => {
        expect((await send(api(), `/companies?${name}=${value}`)).status).to.equal(200);
      });
    }
  }

  for (const name of [
    'x',
    'Page',
    'PAGE',
    'perPage',
    'per_page',
    'per-page[]',
    'page[0]',
    'limit',
    'since',
    '__proto__',
    'constructor',
    'toString',
    'hasOwnProperty',
    'page%20',
    '%20page',
    'page%00',
    '+page',
    '%C5%9F',
    'x'.repeat(1_000),
  ]) {
    it(`rejects the unknown parameter ${name.slice(0, 20)} and lists the known ones`, async () => {
      const message = await refusal(`/companies?${name}=1`);
      const decoded = decodeURIComponent(name.replaceAll('+', ' '));
      expect(message).to.include(JSON.stringify(decoded).slice(0, 40)).and.include('page and per-page');
    });
  }

  for (const query of ['=1', '&', '&&', 'page=1&', '&page=1', 'page=1&&per-page=1', 'page=1&=', '=']) {
    it(`rejects ?${query}: a parameter has no name`, async () => {
      expect(await refusal(`/companies?${query}`)).to.equal(
        'The parameter "" is unknown; this route accepts name, words, ids, version, page and per-page.',
      );
    });
  }

  it('rejects a name that is not percent-encoded UTF-8, and quotes it', async () => {
    expect(await refusal('/companies?%ZZ=1')).to.include('"%ZZ"');
    expect(await refusal('/companies?pa%FFge=1')).to.include('"pa%FFge"');
  });

  it('rejects an unknown parameter at any place among good ones', async () => {
    for (const query of ['x=1&page=1', 'page=1&x=1', 'page=1&x=1&per-page=1']) {
      expect(await refusal(`/companies?${query}`)).to.include('"x"');
    }
  });

  it('accepts both parameters in either order', async () => {
    const { body } = await send(api(), '/companies?page=2&per-page=1');
    expect((await send(api(), '/companies?per-page=1&page=2')).body.equals(body)).to.equal(true);
  });

  it('ignores a fragment', async () => {
    const request = (target: string) =>
      `GET ${target} HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer ${api().key}\r\nConnection: close\r\n\r\n`;
    for (const [target, status] of [
      ['/companies#?page=0', 200],
      ['/companies?page=1#&x=1', 200],
      ['/companies?page=0#1', 400],
    ] as const) {
      expect((await exchange(api(), request(target)))[0]?.status, target).to.equal(status);
    }
  });
});
