// Conditional requests: when an answer is 304.

import { expect } from 'chai';
import { isNotModified } from '../../../api/reply/reply.ts';

describe('conditional requests', () => {
  const lastModified = 'Wed, 04 Mar 2026 03:00:01 GMT';
  const judge = (ifNoneMatch?: string, ifModifiedSince?: string) =>
    isNotModified({ ifNoneMatch, ifModifiedSince }, { etag: 'W/"a,b"', lastModified });

  it('are not met by no condition', () => {
    expect(judge()).to.equal(false);
  });

  it('compare tags weakly, one by one, also those that contain commas', () => {
    for (const field of ['W/"a,b"', '"a,b"', '*', ' * ', '"x", "a,b"', 'W/"x",W/"a,b","y"']) {
      expect(judge(field), field).to.equal(true);
    }
    for (const field of ['', 'a,b', '"a","b"', '"a"', '"a,b', 'a,b"', 'w/a,b', '"*"', '"A,B"', '"xa,b"']) {
      expect(judge(field), field).to.equal(false);
    }
  });

  it('hold on the identical date only, and only without If-None-Match', () => {
    expect(judge(undefined, lastModified)).to.equal(true);
    expect(judge(undefined, 'Wed, 04 Mar 2026 03:00:02 GMT')).to.equal(false);
    expect(judge(undefined, 'Wed, 04 Mar 2026 03:00:00 GMT')).to.equal(false);
    expect(judge('"x"', lastModified)).to.equal(false);
    expect(judge('"a,b"', 'Thu, 01 Jan 1970 00:00:00 GMT')).to.equal(true);
  });
});
