// Tests the record reader: any bytes of an upstream become records in order, or one sentence that says what is wrong.

import { pathToFileURL } from 'node:url';
import { expect } from 'chai';
import {
  type ReaderLimits,
  type ReadOptions,
  type RecordBatch,
  readRecords,
  type SourceRecord,
  UpstreamChangedError,
  type Walk,
} from '../../../importer/parse/pages.ts';
import { UpstreamError } from '../../../importer/upstream/access.ts';
import type { UpstreamDocument } from '../../../importer/upstream/body.ts';
import { createUpstream, type Upstream } from '../../../importer/upstream/upstream.ts';
import { type Responder, refusing, sending, upstreamServers } from '../../support/upstream-server.ts';
import { listUrl, readList, whichLists } from '../../support/whole-lists.ts';

const URL_IN_MEMORY = new URL('http://upstream.test/list');

describe('record reader', () => {
  const start = upstreamServers();
  const open: Upstream[] = [];
  afterEach(() => Promise.all(open.splice(0).map((upstream) => upstream.close())));

  async function read(
    url: URL,
    options: Partial<ReadOptions> = {},
  ): Promise<{ records: SourceRecord[]; walk: Walk }> {
    const upstream = createUpstream({ limits: { backoffMs: 2 } });
    open.push(upstream);
    return collected(readRecords({ url, upstream, ...options }));
  }

  describe('accepts a list', () => {
    const records = [
      { id: 1, name: 'İlaç' },
      { id: 2, name: '' },
      { id: 3, list: [[], {}, [1, null, true, false]] },
    ];
    const forms: [string, string][] = [
      ['as an array', JSON.stringify(records)],
      ['in an envelope', JSON.stringify({ success: true, data: records })],
      [
        'in an envelope that begins with other things',
        JSON.stringify({ data_: [{ data: [0] }], _meta: {}, data: records }),
      ],
      [
        'in an envelope that ends with other things',
        JSON.stringify({ data: records, x: { y: ['data', {}] }, z: 1 }),
      ],
      ['with white space wherever it may be', ` \n${JSON.stringify({ data: records }, null, '\t')}\r\n\n`],
      ['after a byte order mark', `\ufeff${JSON.stringify(records)}`],
    ];
    for (const [title, text] of forms) {
      it(title, async () => {
        const { records: found, walk } = await readText(text);
        expect(found.map(({ value }) => value)).to.deep.equal(records);
        expect(found.map(({ position }) => position)).to.deep.equal([1, 2, 3]);
        expect(found.map((record) => JSON.parse(record.raw()))).to.deep.equal(records);
        expect(found.map(({ flaw }) => flaw)).to.deep.equal([null, null, null]);
        expect(walk).to.include({ notModified: false, pages: 1, totalCount: undefined });
        expect(walk.warnings).to.deep.equal([]);
      });
    }

    it('as JSON Lines, with blank lines and either line end', async () => {
      const [one, two, three] = records.map((record) => JSON.stringify(record));
      for (const text of [
        `${one}\n${two}\n${three}`,
        `\ufeff\n \t\r\n${one}\r\n\n${two} \n \n${three}\n\n`,
      ]) {
        const { records: found } = await readText(text, { lines: true });
        expect(found.map(({ value }) => value)).to.deep.equal(records);
        expect(found.map(({ position }) => position)).to.deep.equal([1, 2, 3]);
      }
    });

    it('without records', async () => {
      expect((await readText('[]')).records).to.deep.equal([]);
      expect((await readText('{"data":[]}')).records).to.deep.equal([]);
    });

    it('whose elements are not objects', async () => {
      const values = [1, null, 'a', [], [{}], true, false, -0, {}];
      const text = '[1,null,"a",[],[{}],true,false,-0,{}]';
      expect((await readText(text)).records.map(({ value }) => value)).to.deep.equal(values);
      const lines = await readText('1\nnull\n"a"\n[]\n[{}]\ntrue\nfalse\n-0\n{}', { lines: true });
      expect(lines.records.map(({ value }) => value)).to.deep.equal(values);
    });

    it('in batches, none of them empty', async () => {
      const text = JSON.stringify(records);
      const batches: (readonly SourceRecord[])[] = [];
      const upstream = inMemory([text.slice(0, 20), text.slice(20, 30), text.slice(30)]);
      for await (const batch of readRecords({ url: URL_IN_MEMORY, upstream })) batches.push(batch.records);
      expect(batches.map(({ length }) => length)).to.deep.equal([1, 2]);
    });

    it('split at every byte', async () => {
      const text = `\ufeff{"_meta":{"totalCount":4},"data": [{"ş\\u0131":"€😀\\ud83d\\ude00\\n","n":-12.5e+3},
        [true,false,null,{"a":[[]],"b":{}}], 1234567890 ,"x\\\\\\"y"],"_links":{"next":null}} `;
      const bytes = Buffer.from(text);
      const expected = JSON.parse(text.slice(1)).data;
      const raws = [
        '{"şı":"€😀😀\\n","n":-12.5e+3}',
        '[true,false,null,{"a":[[]],"b":{}}]',
        '1234567890',
        '"x\\\\\\"y"',
      ];
      for (let cut = 0; cut <= bytes.length; cut++) {
        const { records, walk } = await readChunks([bytes.subarray(0, cut), bytes.subarray(cut)]);
        expect(records.map(({ value }) => value)).to.deep.equal(expected);
        expect(records.map((record) => record.raw())).to.deep.equal(raws);
        expect(walk.warnings).to.deep.equal([]);
      }
      const { records } = await readChunks([...bytes].map((byte) => Uint8Array.of(byte)));
      expect(records.map(({ value }) => value)).to.deep.equal(expected);
      expect(records.map((record) => record.raw())).to.deep.equal(raws);
    });

    it('of JSON Lines split at every byte', async () => {
      const values = [{ a: 'ş"\n' }, 12, [true], 'x', null];
      const bytes = Buffer.from(values.map((value) => JSON.stringify(value)).join('\r\n'));
      for (let cut = 0; cut <= bytes.length; cut++) {
        const { records } = await readChunks([bytes.subarray(0, cut), bytes.subarray(cut)], { lines: true });
        expect(records.map(({ value }) => value)).to.deep.equal(values);
      }
    });

    for (const name of ['products', 'companies', 'dirty'] as const) {
      it(`of ${name} of ${whichLists}, exactly as JSON.parse does`, async () => {
        const expected = readList(name);
        const { records } = await read(listUrl(name));
        expect(records.length).to.equal(expected.length);
        // Compares texts first: a deep comparison of so many records takes longer than all the rest.
        expect(JSON.stringify(records.map(({ value }) => value)) === JSON.stringify(expected)).to.equal(true);
        expect(records.every((record, index) => record.raw() === JSON.stringify(expected[index]))).to.equal(
          true,
        );
        expect(
          records.every(({ flaw, position }, index) => flaw === null && position === index + 1),
        ).to.equal(true);
      });
    }
  });

  describe('keeps what JSON.parse would lose', () => {
    async function only(text: string): Promise<SourceRecord> {
      const { records } = await readText(`[${text}]`);
      expect(records.length).to.equal(1);
      return records[0] as SourceRecord;
    }

    const numbers: [string, number][] = [
      ['0', 0],
      ['-0', -0],
      ['-0.0', -0],
      ['0e5', 0],
      ['1.0', 1],
      ['10e-1', 1],
      ['1E2', 100],
      ['1.5', 1.5],
      ['0.1e1', 1],
      ['0.00001e+5', 1],
      ['-12e3', -12000],
      ['9007199254740991', 9007199254740991],
      ['9007199254740991.0', 9007199254740991],
      ['900719925474099100e-2', 9007199254740991],
      ['9007199254740992', 9007199254740992],
      ['9007199254740993', 9007199254740992],
      ['9007199254740990.6', Number.NaN],
      ['1.00000000000000000001', Number.NaN],
      ['-1.00000000000000000001', Number.NaN],
      ['0.99999999999999999999', Number.NaN],
      ['4503599627370497.4', Number.NaN],
      ['1e-400', Number.NaN],
      ['-1e-400', Number.NaN],
      ['1e-99999999999999999999', Number.NaN],
      ['1e400', Number.POSITIVE_INFINITY],
      ['-1e400', Number.NEGATIVE_INFINITY],
      ['0.1', 0.1],
    ];
    for (const [lexeme, value] of numbers) {
      it(`in the number ${lexeme}, which is ${Object.is(value, -0) ? '-0' : value}`, async () => {
        const record = await only(lexeme);
        expect(Object.is(record.value, value), String(record.value)).to.equal(true);
        expect(record.raw()).to.equal(lexeme);
      });
    }

    it('in members with numeric names, in their order', async () => {
      const text = '{"b":[{"2":0,"1":0}],"0":1,"a":1.5}';
      const record = await only(text);
      expect(record.value).to.deep.equal(JSON.parse(text));
      expect(record.raw()).to.equal(text);
    });

    it('if a member is repeated', async () => {
      const text = '{"product":{"id":1,"name":"a"},"product":{"id":2}}';
      const record = await only(text);
      expect(record.flaw).to.deep.equal({ path: '$.product', reason: 'is given more than once' });
      expect(record.raw()).to.equal(text);
    });

    it('if a member is repeated deep inside, and reports the first place', async () => {
      const text = '{"a":[0,{"b c":1,"b\\u0020c":1}],"a":null}';
      expect((await only(text)).flaw?.path).to.equal('$.a[1]["b c"]');
    });

    it('but reports no repetition without one', async () => {
      const text = '[{"a":{"a":[{"a":1},{"a":2}]}},{"a":1,"toString":2,"constructor":3},{"a":1}]';
      const { records } = await readText(text);
      expect(records.map(({ flaw }) => flaw)).to.deep.equal([null, null, null]);
      expect(records.map(({ value }) => value)).to.deep.equal(JSON.parse(text));
    });

    it('in a member called __proto__', async () => {
      const text = '{"__proto__":{"id":1},"a":2}';
      const { value, flaw } = await only(text);
      expect(Object.keys(value as object)).to.deep.equal(['__proto__', 'a']);
      expect(Object.getPrototypeOf(value)).to.equal(Object.prototype);
      expect((value as { id?: number }).id).to.equal(undefined);
      expect(flaw).to.equal(null);
      expect((await only('{"__proto__":1,"__proto__":2}')).flaw?.path).to.equal('$.__proto__');
    });

    it('in lone surrogates', async () => {
      const record = await only('"\\ud800 \\udc00\\ud83d\\ude00"');
      expect(record.value).to.equal('\ud800 \udc00😀');
      expect(JSON.parse(record.raw())).to.equal(record.value);
    });

    it('in 32 levels of nesting, and rejects 33', async () => {
      const nested = (levels: number) => `${'{"a":'.repeat(levels - 1)}[]${'}'.repeat(levels - 1)}`;
      const record = await only(nested(32));
      expect(record.flaw).to.equal(null);
      expect(record.value).to.deep.equal(JSON.parse(nested(32)));
      const deeper = await only(nested(33));
      expect(deeper.flaw).to.deep.equal({
        path: `$${'.a'.repeat(32)}`,
        reason: 'is nested deeper than 32 levels',
      });
      expect(deeper.raw()).to.equal(nested(33));
      const arrays = await only(`${'[0,'.repeat(33)}1${']'.repeat(33)}`);
      expect(arrays.flaw?.path).to.equal(`$${'[1]'.repeat(32)}`);
    });

    for (const [open, close] of [
      ['[', ']'],
      ['{"a":', '}'],
    ] as const) {
      it(`in 100,000 levels of ${open}, and continues with the next record`, async () => {
        const text = `${open.repeat(100_000)}1${close.repeat(100_000)}`;
        const { records } = await readText(`[${text},{"id":2}]`);
        expect(records[0]?.flaw?.reason).to.contain('nested deeper');
        expect(records[0]?.raw()).to.equal(text);
        expect(records[1]).to.include({ position: 2, flaw: null });
        expect(records[1]?.value).to.deep.equal({ id: 2 });
      });
    }
  });

  describe('fails on a document', () => {
    const cases: [title: string, text: string | Uint8Array, reason: string][] = [
      ['that is empty', '', 'is empty; expected a list'],
      ['of white space', ' \n\t\r\n', 'is empty'],
      ['of a byte order mark', '\ufeff', 'is empty'],
      ['that is a web page', '<!DOCTYPE html><html>', 'is not JSON: it begins with "<!DOCTYPE html><html'],
      ['that is one word', 'OK', 'is not JSON: it begins with "OK"'],
      ['that begins with a no-break space', '\u00a0[]', 'is not'],
      ['that is a number', '12', 'holds a number; expected a list of records'],
      ['that is a text', '"a"', 'holds a string'],
      ['that is null', 'null', 'holds null'],
      ['that is an object without data', '{"items":[]}', 'is an object without a "data" member'],
      ['that is an empty object', '{}', 'without a "data" member'],
      ['whose data is inside something else', '{"x":{"data":[]}}', 'without a "data" member'],
      ['whose data is an object', '{"data":{"name":"Not Found"}}', 'has a "data" member that is an object'],
      ['whose data is null', '{"data":null}', 'has a "data" member that is null'],
      ['whose data is a text', '{"data":"[]"}', 'has a "data" member that is a string'],
      ['with two data members', '{"data":[],"data":[]}', 'has two "data" members'],
      ['with two _links members', '{"_links":null,"data":[],"_links":null}', 'has two "_links" members'],
      [
        'with two next links',
        '{"_links":{"next":null,"next":null},"data":[]}',
        '$._links.next is given more than once',
      ],
      ['whose links are a text', '{"data":[],"_links":"/2"}', '"_links" member that is not an object'],
      [
        'whose next link is a text',
        '{"data":[],"_links":{"next":"/2"}}',
        '"_links.next" member that is not an object',
      ],
      [
        'whose next href is a number',
        '{"data":[],"_links":{"next":{"href":2}}}',
        'href" that is not a string',
      ],
      [
        'whose next href is no URL',
        '{"data":[1],"_links":{"next":{"href":"http://["}}}',
        'next page that is not a URL',
      ],
      ['with something after its list', '[{}] x', 'is not valid JSON'],
      ['with two lists', '[{}][{}]', 'is not valid JSON, soon after its start: unexpected characters.'],
      ['with a second byte order mark', '\ufeff\ufeff[]', 'is not'],
      ['with a comma too many', '[{},]', 'is not valid JSON'],
      ['with single quotes', "[{'a':1}]", 'is not valid JSON'],
      ['with a number that JSON does not have', '[01]', 'is not valid JSON'],
      ['with NaN', '[NaN]', 'is not valid JSON'],
      ['with a line break inside a text', '["a\nb       "]', 'is not valid JSON'],
      ['with brackets that do not match', '[{"a":[}]]', 'is not valid JSON'],
      ['of JSON Lines that is not said to be', '{"id":1}\n{"id":2}\n', 'is not valid JSON'],
      ['that is not UTF-8', Buffer.from('["\xe9"]', 'latin1'), 'is not valid UTF-8, soon after its start'],
      [
        'with a surrogate in its UTF-8',
        Buffer.from([0x5b, 0x22, 0xed, 0xa0, 0x80, 0x22, 0x5d]),
        'is not valid UTF-8',
      ],
      ['that is truncated in a character', Buffer.from('["ş').subarray(0, 3), 'is not valid UTF-8'],
      ['that is UTF-16', Buffer.from('\ufeff[]', 'utf16le'), 'is not valid UTF-8'],
    ];
    for (const [title, text, reason] of cases) {
      it(title, async () => {
        expect(await reasonOf(readText(text))).to.contain(reason);
      });
    }

    it('truncated at any byte except in trailing white space', async () => {
      for (const whole of [
        '[{"a":"ş","b":[1.5,true]},-2,null]',
        '{"_meta":{"totalCount":2},"data":[{},"x"],"c":12}',
      ]) {
        const bytes = Buffer.from(whole);
        for (let length = 1; length < bytes.length; length++) {
          const reason = await reasonOf(readText(bytes.subarray(0, length)));
          expect(reason, String(length)).to.match(
            /is truncated: its JSON ends early, after |is not valid UTF-8/,
          );
        }
      }
    });
  });

  describe('fails on JSON Lines', () => {
    const cases: [title: string, text: string, reason: string][] = [
      ['that are empty', '', 'is empty'],
      ['that are all blank', '\n \n\r\n', 'is empty'],
      ['with a malformed line', '{"a":1}\n\n{"a":}\n', 'line 3 is not one complete JSON value.'],
      ['with two values on a line', '{"a":1}\n{"a":2} {"a":3}\n', 'line 2 is not one complete JSON value.'],
      ['with two numbers on a line', '1 2\n', 'line 1 is not'],
      ['with the beginning of a text after a value', '1 "ab\n2\n', 'line 1 is not'],
      ['with the beginning of a word after a value', '{"a":1} tru\n2\n', 'line 1 is not'],
      ['with a value over two lines', '{"a":\n1}\n', 'line 1 is not one complete JSON value.'],
      ['with a text over two lines', '"a\nb"\n', 'line 1 is not one complete JSON value.'],
      ['with an unfinished word', 'tru\n1\n', 'line 1 is not one complete JSON value.'],
      ['whose last line is truncated', '{"a":1}\n{"a":', 'line 2 is not one complete JSON value.'],
      ['whose last line is truncated in a text', '{"a":1}\n"a', 'line 2 is not one complete JSON value.'],
      ['with a comma at the end of a line', '{"a":1},\n', 'line 1 is not'],
    ];
    for (const [title, text, reason] of cases) {
      it(title, async () => {
        expect(await reasonOf(readText(text, { lines: true }))).to.contain(reason);
        const bytes = [...Buffer.from(text)].map((byte) => Uint8Array.of(byte));
        expect(await reasonOf(readChunks(bytes, { lines: true }))).to.contain(reason);
      });
    }
  });

  describe('reads only as much as necessary', () => {
    const limits = { bytesWithoutRecord: 256 * 1024 };
    const endless: [string, string][] = [
      ['of white space', '[{"id":1}, '],
      ['of white space after the end', '[{"id":1}] '],
      ['of a single text', '[{"id":1},{"a":"'],
      ['of a single name', '[{"id":1},{"'],
      ['of a single number', '[{"id":1},12'],
      ['of nesting', '[{"id":1},['],
      ['of a member beside the data', '{"data":[{"id":1}],"x":["'],
    ];
    for (const [title, begin] of endless) {
      it(`of an endless document of ${title}`, async () => {
        const filler = begin.endsWith(' ') ? ' ' : begin.endsWith('[') ? '[' : '1';
        let pulled = 0;
        async function* body() {
          yield Buffer.from(begin);
          for (;;) {
            pulled += 50_000;
            yield Buffer.alloc(50_000, filler);
          }
        }
        const reading = collected(readRecords({ url: URL_IN_MEMORY, upstream: inMemory(body()), limits }));
        expect(await reasonOf(reading)).to.contain(
          'goes on for more than 262144 bytes after record 1 without another',
        );
        expect(pulled).to.be.within(256 * 1024, 320 * 1024);
      });
    }

    it('but any number of records, even in one chunk', async () => {
      const text = `[${'{"name":"0123456789"},'.repeat(100_000)}{}]`;
      expect((await readText(text, { limits })).records.length).to.equal(100_001);
    });

    it('and returns records before the end of their document', async () => {
      let arrived: () => void = () => {};
      const isFirstBatch = new Promise<void>((resolve) => {
        arrived = resolve;
      });
      async function* body() {
        yield '[{"id":1},';
        await isFirstBatch;
        yield '{"id":2}]';
      }
      const sizes: number[] = [];
      for await (const batch of readRecords({ url: URL_IN_MEMORY, upstream: inMemory(body()) })) {
        sizes.push(batch.records.length);
        arrived();
      }
      expect(sizes).to.deep.equal([1, 1]);
    });

    it('and closes the connection when its reader stops early', async () => {
      let closed: () => void;
      const isClosed = new Promise<void>((resolve) => {
        closed = resolve;
      });
      const server = await start((response) => {
        response.write('[');
        const flood = setInterval(() => response.write('{"id":1},'.repeat(1000)), 1);
        response.on('close', () => {
          clearInterval(flood);
          closed();
        });
      });
      const upstream = createUpstream();
      open.push(upstream);
      for await (const batch of readRecords({ url: server.url(), upstream })) {
        expect(batch.records.length).to.be.above(0);
        break;
      }
      await isClosed;
    });
  });

  describe('reads pages', () => {
    const pageOf = (data: unknown[], next?: unknown, totalCount?: unknown) => ({
      data,
      _links: { self: { href: 'x' }, next: next === undefined ? undefined : { href: next } },
      _meta: { totalCount },
    });
    const paged =
      (pages: Record<string, Responder>): Responder =>
      (response, request, nth) =>
        (pages[request.url ?? ''] ?? refusing(404))(response, request, nth);

    it('to the last one, by relative and absolute links', async () => {
      const server = await start((response, request, nth) =>
        paged({
          '/api/list?page=1': sending(pageOf([{ id: 1 }, { id: 2 }], '?page=2', 4)),
          '/api/list?page=2': sending(pageOf([{ id: 3 }], `${server.origin}/api/list?page=3#x`, 4)),
          '/api/list?page=3': sending(pageOf([{ id: 4 }], '', 4), { etag: '"3"' }),
        })(response, request, nth),
      );
      const { records, walk } = await read(server.url('/api/list?page=1'));
      expect(records.map(({ value, position }) => [value, position])).to.deep.equal(
        [1, 2, 3, 4].map((id) => [{ id }, id]),
      );
      expect(walk).to.deep.equal({
        notModified: false,
        pages: 3,
        totalCount: 4,
        version: null,
        validators: null,
        warnings: [],
      });
    });

    it('by links relative to the target of a redirect', async () => {
      const server = await start(
        paged({
          '/list': refusing(302, { location: '/v2/list' }),
          '/v2/list': sending(pageOf([1], 'more')),
          '/v2/more': sending(pageOf([2])),
        }),
      );
      expect((await read(server.url('/list'))).records.length).to.equal(2);
    });

    for (const [title, links] of [
      ['null links', null],
      ['links that are an empty array', []],
      ['no next link', {}],
      ['a null next link', { next: null }],
      ['a next link without href', { next: {} }],
      ['a null href', { next: { href: null } }],
      ['an empty href', { next: { href: '' } }],
    ] as const) {
      it(`up to one with ${title}`, async () => {
        const server = await start(
          sending({ data: [1], _links: links }, { etag: '"e"', 'medref-version': '3' }),
        );
        const { walk } = await read(server.url());
        expect(walk.pages).to.equal(1);
        expect(walk.version).to.equal('3');
        expect(walk.validators).to.deep.equal({ etag: '"e"', lastModified: null });
        expect(server.requests.length).to.equal(1);
      });
    }

    it('not at all if nothing has changed', async () => {
      const server = await start(refusing(304));
      const { records, walk } = await read(server.url(), { validators: { etag: '"e"', lastModified: null } });
      expect(records).to.deep.equal([]);
      expect(walk).to.include({ notModified: true, pages: 0 });
    });

    it('and asks conditionally only for the first one', async () => {
      const server = await start(paged({ '/1': sending(pageOf([1], '/2')), '/2': sending(pageOf([2])) }));
      await read(server.url('/1'), { validators: { etag: '"e"', lastModified: null } });
      expect(server.requests.map(({ headers }) => headers['if-none-match'])).to.deep.equal([
        '"e"',
        undefined,
      ]);
    });

    it('but never from another origin', async () => {
      const other = await start(sending([1]));
      const port = new URL(other.origin).port;
      for (const href of [
        other.origin,
        `http://localhost:${port}/`,
        `//127.0.0.1:${port}/x?key=s3cret`,
        'file:///etc/hosts',
      ]) {
        const server = await start(sending(pageOf([1], href)));
        const reason = await reasonOf(read(server.url()));
        expect(reason).to.contain('has its next page at another origin');
        expect(reason).not.to.contain('s3cret');
      }
      expect(other.requests.length).to.equal(0);
    });

    it('but never from the network after a file', async () => {
      const server = await start(sending([1]));
      const file = pathToFileURL('/nowhere/list.json');
      const upstream = inMemory([JSON.stringify(pageOf([1], server.origin))], { url: file });
      const reason = await reasonOf(collected(readRecords({ url: file, upstream })));
      expect(reason).to.contain('at another origin');
    });

    it('but never in a loop', async () => {
      for (const next of ['/1', '/2', '/1#again']) {
        const server = await start(
          paged({ '/1': sending(pageOf([1], '/2')), '/2': sending(pageOf([2], next)) }),
        );
        expect(await reasonOf(read(server.url('/1')))).to.contain('that was read before: a loop');
        expect(server.requests.length).to.equal(2);
      }
    });

    it('but never more than the limit', async () => {
      const endless: Responder = (response, request, nth) =>
        sending(pageOf([1], `/${nth + 1}`))(response, request, nth);
      const server = await start(endless);
      expect(await reasonOf(read(server.url('/1'), { limits: { pages: 7 } }))).to.contain(
        'more than 7 pages',
      );
      expect(server.requests.length).to.equal(7);
    });

    it('and checks a total count that is a string of digits', async () => {
      const short = await start(sending(pageOf([1, 2], undefined, '3')));
      expect(await reasonOf(read(short.url()))).to.contain('truncated: its totalCount is 3');
      const exact = await start(sending(pageOf([1, 2], undefined, '2')));
      const { walk } = await read(exact.url());
      expect(walk).to.deep.include({ totalCount: '2', warnings: [] });
      const more = await start(sending(pageOf([1, 2], undefined, '1')));
      expect((await read(more.url())).walk.warnings.join()).to.contain(
        'totalCount of 1, but 2 records were read',
      );
      const endless = await start((response, request, nth) =>
        sending(pageOf([1, 2], `/${nth + 1}`, '5'))(response, request, nth),
      );
      expect(await reasonOf(read(endless.url('/1')))).to.contain('although 6 records were read');
    });

    it('and warns if the total count is invalid, without checking it', async () => {
      for (const totalCount of ['3 records', '', '-1', '1e3', true, [3], { of: 'x'.repeat(99) }]) {
        const server = await start(sending(pageOf([1, 2], undefined, totalCount)));
        const { walk } = await read(server.url());
        expect(walk.warnings, String(totalCount)).to.have.length(1);
        expect(walk.warnings[0])
          .to.contain(`totalCount that is not a number, ${JSON.stringify(totalCount).slice(0, 40)}`)
          .and.have.length.below(200);
      }
      const silent = await start(sending(pageOf([1, 2], undefined, null)));
      expect((await read(silent.url())).walk.warnings).to.deep.equal([]);
    });

    for (const [title, before, now] of [
      ['total count', 4, 3],
      ['total count, be it no number', { a: [1] }, { a: [2] }],
      ["total count's type", 4, '4'],
      ['total count, by losing it', 4, undefined],
    ] as const) {
      it(`and reports that the list changed its ${title}`, async () => {
        const server = await start(
          paged({ '/1': sending(pageOf([1], '/2', before)), '/2': sending(pageOf([2], undefined, now)) }),
        );
        const error = await failureOf(read(server.url('/1')));
        expect(error).to.be.instanceOf(UpstreamChangedError);
        expect((error as Error).message).to.contain('changed while it was read: its totalCount was');
      });
    }

    it('and reports that the list changed its version, before it returns records of the new one', async () => {
      for (const version of [{ 'medref-version': '8' }, {}]) {
        const server = await start(
          paged({
            '/1': sending(pageOf([1], '/2'), { 'medref-version': '7' }),
            '/2': sending(pageOf([2]), version as Record<string, string>),
          }),
        );
        const seen: SourceRecord[] = [];
        const upstream = createUpstream();
        open.push(upstream);
        const error = await failureOf(
          (async () => {
            for await (const batch of readRecords({ url: server.url('/1'), upstream }))
              seen.push(...batch.records);
          })(),
        );
        expect(error).to.be.instanceOf(UpstreamChangedError).and.instanceOf(UpstreamError);
        expect(seen.map(({ value }) => value)).to.deep.equal([1]);
      }
    });
  });
});

interface InMemoryOptions {
  lines?: boolean;
  url?: URL;
  limits?: Partial<ReaderLimits>;
}

/** Returns an upstream of one document, whose chunks come exactly as given. */
function inMemory(
  chunks: Iterable<string | Uint8Array> | AsyncIterable<string | Uint8Array>,
  { lines = false, url = URL_IN_MEMORY }: InMemoryOptions = {},
): Upstream {
  async function* body(): AsyncGenerator<Uint8Array> {
    for await (const chunk of chunks) yield Buffer.from(chunk as Uint8Array);
  }
  const validators = { etag: null, lastModified: null };
  const arrival = () => ({ bytes: 0, of: null });
  const document: UpstreamDocument = {
    ...{ url, lines, version: null, validators },
    ...{ body: body(), arrival, close: () => {} },
  };
  return { open: async () => document, close: async () => {} };
}

function readChunks(chunks: Iterable<string | Uint8Array>, options: InMemoryOptions = {}) {
  const { limits } = options;
  return collected(readRecords({ url: URL_IN_MEMORY, upstream: inMemory(chunks, options), limits }));
}

function readText(text: string | Uint8Array, options: InMemoryOptions = {}) {
  return readChunks([text], options);
}

async function collected(
  reading: AsyncGenerator<RecordBatch, Walk, undefined>,
): Promise<{ records: SourceRecord[]; walk: Walk }> {
  const records: SourceRecord[] = [];
  for (;;) {
    const next = await reading.next();
    if (next.done) return { records, walk: next.value };
    expect(next.value.records.length).to.be.above(0);
    records.push(...next.value.records);
  }
}

async function failureOf(promise: Promise<unknown>): Promise<unknown> {
  try {
    await promise;
  } catch (error) {
    return error;
  }
  throw new Error('it succeeded, where a failure was expected');
}

async function reasonOf(promise: Promise<unknown>): Promise<string> {
  const error = await failureOf(promise);
  expect(error).to.be.instanceOf(UpstreamError);
  expect((error as Error).message).to.match(/^(http|file):\/\/.*\.$/s);
  return (error as Error).message;
}
