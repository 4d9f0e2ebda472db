// Tests that text of upstream cannot control a terminal: in every command that prints it, and in the logs.

import { expect } from 'chai';
import { medref as run } from '../support/medref.ts';
import { product } from '../support/records.ts';
import { useRedis } from '../support/redis-server.ts';
import { upstreamServers } from '../support/upstream-server.ts';

/** Colours by ESC and by CSI alone, a bell, a title, DEL, a forged line, text that runs backwards, an invisible tag. */
const marks = '\x1b[31m\x9b2J\x07\x1b]0;title\x9c\x7f\r\nproducts: published\u202edesrever\u200b\u{e0041}';
const steering = /[^\n\P{Cc}]|\p{Cf}/u;

describe('text from upstream on the command line', function () {
  this.timeout(60_000);
  const server = useRedis();
  const startUpstream = upstreamServers();
  const name = { id: 1, name: `A${marks}` };
  const lists: [what: string, body: string][] = [
    ['a list', JSON.stringify([product(1), product(2)])],
    [
      'records with such names, members and barcodes',
      JSON.stringify([
        product(1, { drug: name, drugform: name }),
        { ...product(2), [`new${marks}`]: 1 },
        { ...product(3), barcodes: [{ barcode: marks, skrsStatus: marks }] },
        { ...product(4), published: marks },
        { ...product(5), product: { id: marks, name: marks } },
      ]),
    ],
    ['a body that is none', `${marks}<html>`],
    ['a body that ends in the middle', `[{"product":"${marks}`],
    ['a document without a list', JSON.stringify({ [marks]: marks, data: marks })],
  ];
  let printed: { what: string; stdout: string; stderr: string }[];

  before(async () => {
    let body = '';
    const upstream = await startUpstream((response) => response.end(body));
    const settings = { REDIS_URL: server().url, PRODUCTS_URL: upstream.url(`/${marks}`).href };
    const medref = async (what: string, ...args: string[]) => {
      const { stdout, stderr } = await run(args, { ...settings, LOG_LEVEL: 'trace' });
      printed.push({ what: `${args.join(' ')}, after ${what}`, stdout, stderr });
    };
    printed = [];
    for (const [what, text] of lists) {
      body = text;
      await medref(what, 'import', 'products', '--force', '--json');
      await medref(what, 'status');
      await medref(what, 'import', 'products', '--force', '--dry-run');
    }
    for (const args of [['rejects', 'products'], ['status'], ['diff', 'products']]) {
      await medref('all', ...args);
      await medref('all', ...args, '--json');
    }
  });

  it('controls no terminal, in results or logs', () => {
    for (const { what, stdout, stderr } of printed) {
      expect(stdout, `${what} prints nothing`).not.to.equal('');
      expect(stdout, what).not.to.match(steering);
      expect(stderr, what).not.to.match(steering);
    }
  });

  it('is printed with escapes, so that it stays readable', () => {
    const of = (command: string) =>
      printed
        .filter(({ what }) => what.startsWith(command))
        .map(({ stdout }) => stdout)
        .join('');
    expect(of('diff products, ')).to.include('\\u{009b}2J').and.to.include('\\u{202e}desrever');
    expect(of('rejects products, ')).to.include('\\u{009b}2J').and.to.include('\\u{e0041}');
    expect(of('import products --force --dry-run, ')).to.include('$["new\\u001b[31m\\u{009b}2J');
    expect(of('status, ')).to.include('\\u{009b}2J');
  });

  it('is unchanged in parsed JSON', () => {
    const { stdout } = printed.at(-1) as { stdout: string };
    const { changed } = JSON.parse(stdout) as { changed: { after: object }[] };
    expect(changed.map(({ after }) => after)).to.deep.equal([product(1, { drug: name, drugform: name })]);
  });
});
