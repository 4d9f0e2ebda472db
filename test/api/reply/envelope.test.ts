// The bytes around records.

import { expect } from 'chai';
import { listBody } from '../../../api/reply/body.ts';
import {
  changeElement,
  errorEnvelope,
  listEnd,
  listStart,
  pageLinks,
  pageMeta,
  singleEnvelope,
} from '../../../api/reply/envelope.ts';

describe('envelope', () => {
  const meta = pageMeta(2, { page: 1, perPage: 200 });
  const links = pageLinks('http://a/x', meta);
  const tail =
    '],"_links":{"self":{"href":"http://a/x?page=1&per-page=200"},"first":{"href":"http://a/x?page=1&per-page=200"},' +
    '"last":{"href":"http://a/x?page=1&per-page=200"}},' +
    '"_meta":{"totalCount":2,"pageCount":1,"currentPage":1,"perPage":200},"success":true}';

  it('joins the bytes of no, one and two records as they are', () => {
    const records = [Buffer.from('{"a":"ş\\ud800"}'), Buffer.from('{ "b" : 1.0 }')];
    for (const [count, data] of ['', '{"a":"ş\\ud800"}', '{"a":"ş\\ud800"},{ "b" : 1.0 }'].entries()) {
      const body = listBody(listStart, { records: records.slice(0, count) }, listEnd(links, meta));
      expect(body.text().toString()).to.equal(`{"data":[${data}${tail}`);
      expect(body.length).to.equal(body.text().length);
    }
  });

  it('puts a change around the bytes of its record, which is absent when it was removed', () => {
    const record = Buffer.from('{ "b" : 1.0 }');
    expect(changeElement({ id: 7, change: 'added', record }).toString()).to.equal(
      '{"id":7,"change":"added","record":{ "b" : 1.0 }}',
    );
    expect(changeElement({ id: 7, change: 'removed', record: null }).toString()).to.equal(
      '{"id":7,"change":"removed"}',
    );
  });

  it('puts one record between data and success', () => {
    expect(singleEnvelope(Buffer.from('{ "b" : 1.0 }')).toString()).to.equal(
      '{"data":{ "b" : 1.0 },"success":true}',
    );
  });

  it('names an error by the reason phrase of its status', () => {
    expect(errorEnvelope(410, 'It is "gone".')).to.equal(
      '{"success":false,"data":{"name":"Gone","message":"It is \\"gone\\".","code":0,"status":410}}',
    );
  });
});
