import { Writable } from 'node:stream';
import { setTimeout as sleep } from 'node:timers/promises';
import { expect } from 'chai';
import { pino } from 'pino';
import { createProgress } from '../../bin/progress.ts';
import type { ImportProgress } from '../../importer/import.ts';

const erase = '\r\x1b[K';

/** What progress writes to a terminal of a width, or to what is none, and what to the log. */
async function shown(
  terminal: { isTTY?: boolean; columns?: number },
  {
    arrival,
    logEveryMs = 1_000,
    afterMs = 250,
  }: { arrival?: ImportProgress['arrival']; logEveryMs?: number; afterMs?: number } = {},
): Promise<{ texts: string[]; log: Record<string, unknown>[] }> {
  const texts: string[] = [];
  const log: Record<string, unknown>[] = [];
  const stream = new Writable({
    write: (chunk, _encoding, done) => {
      texts.push(String(chunk));
      done();
    },
  });
  const logger = pino({}, { write: (line) => void log.push(JSON.parse(line)) });
  const places = { stderr: Object.assign(stream, terminal), logger, logEveryMs };
  const progress = createProgress('products', places);
  progress.show({ read: 7, arrival: null });
  await sleep(afterMs);
  progress.show({ read: 123_456, arrival: arrival ?? null });
  progress.show({ read: 123_457, arrival: arrival ?? null });
  progress.clear();
  return { texts, log };
}

describe('the progress of an import', () => {
  it('is a line on a terminal that is taken away again, with a speed once there is one', async () => {
    const { texts, log } = await shown({ isTTY: true, columns: 80 });
    const [line = '', ...rest] = texts;
    expect(line.slice(0, erase.length)).to.equal(erase);
    const [, rate = ''] = /^products: 123,456 records, ([\d,]+)\/s$/.exec(line.slice(erase.length)) ?? [];
    expect(Number(rate.replaceAll(',', ''))).to.be.within(100_000, 520_000);
    expect(rest.at(-1)).to.equal(erase);
    expect(log).to.deep.equal([]);
  });

  it('has a bar and the time left where it is known how much there is', async () => {
    const { texts } = await shown({ isTTY: true, columns: 80 }, { arrival: { bytes: 10, of: 1_000 } });
    expect(texts[0]?.slice(erase.length)).to.match(
      /^products: \[ {20}\] 1 %, 123,456 records, [\d,]+\/s, (2[4-9]|3\d) s left$/,
    );
    const half = await shown({ isTTY: true }, { arrival: { bytes: 500, of: 1_000 } });
    expect(half.texts[0]).to.match(/\[={10} {10}\] 50 %, .*, 0 s left$/);
    const all = await shown({ isTTY: true }, { arrival: { bytes: 1_000, of: 1_000 } });
    expect(all.texts[0]).to.match(/\[={20}\] 100 %, .*, 0 s left$/);
    const unknown = await shown({ isTTY: true }, { arrival: { bytes: 1_000, of: null } });
    expect(unknown.texts[0]).to.match(/records, [\d,]+\/s$/);
  });

  it('is cut to the width of the terminal', async () => {
    const { texts } = await shown({ isTTY: true, columns: 20 });
    expect(texts[0]).to.equal(`${erase}products: 123,456 re`);
    expect((await shown({ isTTY: true, columns: 0 })).texts[0], 'a width that is not known').to.match(/\/s$/);
  });

  it('is a line of the log elsewhere, with the same figures', async () => {
    const { texts, log } = await shown({}, { arrival: { bytes: 500, of: 1_000 }, afterMs: 1_100 });
    expect(texts).to.deep.equal([]);
    expect(log, 'no more often than that').to.have.length(1);
    const [line = expect.fail()] = log;
    expect(line).to.include({
      msg: 'The import is in progress.',
      collection: 'products',
      read: 123_456,
      percent: 50,
    });
    expect(line['perSecond']).to.be.within(40_000, 115_000);
    expect(line['secondsLeft']).to.be.within(1, 3);
    const unknown = await shown({}, { afterMs: 1_100 });
    expect(unknown.log[0]).not.to.have.any.keys('percent', 'secondsLeft');
  });

  it('is nothing of an import that ends soon', async () => {
    expect(await shown({}, { logEveryMs: 10_000 })).to.deep.equal({ texts: [], log: [] });
    const logger = pino({ level: 'silent' });
    const texts: string[] = [];
    const stderr = new Writable({
      write: (chunk, _encoding, done) => {
        texts.push(String(chunk));
        done();
      },
    });
    createProgress('products', { stderr: Object.assign(stderr, { isTTY: true }), logger }).clear();
    expect(texts).to.deep.equal([]);
  });
});
