import { Writable } from 'node:stream';
import { setTimeout as sleep } from 'node:timers/promises';
import { expect } from 'chai';
import { createProgress } from '../../bin/progress.ts';

/** What progress writes to a terminal of a width, or to what is none. */
async function written(terminal: { isTTY?: boolean; columns?: number }): Promise<string[]> {
  const texts: string[] = [];
  const stream = new Writable({
    write: (chunk, _encoding, done) => {
      texts.push(String(chunk));
      done();
    },
  });
  const progress = createProgress('products', Object.assign(stream, terminal));
  progress.show(7);
  await sleep(150);
  progress.show(123_456);
  progress.clear();
  return texts;
}

describe('the progress of an import', () => {
  it('is a line on a terminal that is taken away again, with a speed once there is one', async () => {
    const [line = '', ...rest] = await written({ isTTY: true, columns: 80 });
    expect(line.slice(0, 4)).to.equal('\r\x1b[K');
    expect(line.slice(4)).to.match(/^products: 123,456 records, [\d,]+\/s$/);
    expect(rest).to.deep.equal(['\r\x1b[K']);
  });

  it('is cut to the width of the terminal', async () => {
    const [line = ''] = await written({ isTTY: true, columns: 20 });
    expect(line).to.equal('\r\x1b[Kproducts: 123,456 re');
    expect((await written({ isTTY: true, columns: 0 }))[0], 'a width that is not known').to.match(/\/s$/);
  });

  it('is nothing anywhere else', async () => {
    expect(await written({})).to.deep.equal([]);
  });
});
