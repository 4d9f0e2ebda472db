import { Boom } from '@hapi/boom';
import { expect } from 'chai';
import { readPageRequest } from '../../../api/requests/paging.ts';

const max = Number.MAX_SAFE_INTEGER;

describe('the page that a request asks for', () => {
  const asked = (parameters: Record<string, string>) => readPageRequest(new Map(Object.entries(parameters)));

  it('asks for page 1 of 200 by default, and never for more than 200', () => {
    expect(asked({})).to.deep.equal({ page: 1, perPage: 200 });
    expect(asked({ page: '3', 'per-page': '10' })).to.deep.equal({ page: 3, perPage: 10 });
    expect(asked({ page: String(max), 'per-page': '201' })).to.deep.equal({ page: max, perPage: 200 });
  });

  it('refuses what is no count', () => {
    for (const text of ['0', '-1', '1.5', ' 1', '9007199254740992']) {
      expect(() => asked({ page: text }), text).to.throw(Boom, 'page');
      expect(() => asked({ 'per-page': text }), text).to.throw(Boom, 'per-page');
    }
  });
});
