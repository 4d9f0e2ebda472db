import { gunzipSync } from 'node:zlib';
import { expect } from 'chai';
import fc from 'fast-check';
import { gzipMember, type ListPart, textLength } from '../../../api/reply/body.ts';
import { type Block, blockText, openBlock, packBlock } from '../../../shared/store/block.ts';

const textOf = (part: ListPart) => (Buffer.isBuffer(part) ? part : blockText(part));
const block = async (texts: readonly string[]) => openBlock(await packBlock(texts)) as Block;

/** What any gzip reader, and any reader of deflate, must find in a list of these parts. */
function expectWhole(parts: readonly ListPart[], start = Buffer.from('['), end = Buffer.from(']')): void {
  const list = parts.flatMap((part, n) => (n === 0 ? [textOf(part)] : [Buffer.from(','), textOf(part)]));
  const whole = Buffer.concat([start, ...list, end]);
  const text = { start, parts, end };
  expect(gunzipSync(gzipMember(text)).equals(whole)).to.equal(true);
  expect(textLength(text)).to.equal(whole.length);
}

describe('a gzip member', () => {
  it('holds its parts one after the other, whatever texts and blocks they are', async () => {
    const text = fc.string({ maxLength: 200 });
    const blocks = fc.array(fc.json({ maxDepth: 1 }), { minLength: 1, maxLength: 120 });
    await fc.assert(
      fc.asyncProperty(fc.array(fc.oneof(text, blocks), { maxLength: 8 }), text, async (parts, last) => {
        const made = await Promise.all(
          parts.map((part) => (typeof part === 'string' ? Buffer.from(part) : block(part))),
        );
        expectWhole(made, Buffer.from('{"data":['), Buffer.from(last));
      }),
    );
  });

  for (const length of [0, 1, 65_534, 65_535, 65_536, 131_070, 131_071, 200_000]) {
    it(`holds a text of ${length} bytes, first, last, alone and between blocks`, async () => {
      const text = Buffer.alloc(length, 'abc');
      const between = await block(['{"a":1}', '{"b":2}']);
      expectWhole([], text, text);
      expectWhole([text, between, text, between, text]);
      expectWhole([between, Buffer.alloc(0), text], Buffer.alloc(0), text);
    });
  }
});
