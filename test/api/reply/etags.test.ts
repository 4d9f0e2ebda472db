// Entity tags of pairs of requests: one tag, one body.

import { expect } from 'chai';
import fc from 'fast-check';
import { validatorsOf } from '../../../api/reply/reply.ts';
import type { Version } from '../../../shared/store/versions.ts';
import { product } from '../../support/records.ts';
import { useService } from '../../support/service.ts';

describe('two requests with one ETag', () => {
  const service = useService();

  it('get the same bytes, whatever their parameters hold', async function () {
    this.timeout(60_000);
    const names = ['N', 'N VERSION 1', 'N VERSION', 'N 1 200', 'VERSION 1', '1'];
    const records = names.map((name, i) => product(i + 1, { product: { id: i + 1, name } }));
    const version = await service.publish(records);
    const word = fc.constantFrom('n', 'version', '1', '2', '200', 'barcode', 'page', '"', ',', '\n');
    const text = fc.array(word, { minLength: 1, maxLength: 4 }).map((words) => words.join(' '));
    const request = fc
      .record(
        {
          name: text,
          page: fc.integer({ min: 1, max: 3 }).map(String),
          'per-page': fc.constantFrom('1', '2', '200'),
          version: fc.constant(String(version)),
        },
        { requiredKeys: [] },
      )
      .map((parameters) => `/products?${new URLSearchParams(parameters)}`);
    const answers = new Map<string, string>();
    await fc.assert(
      fc.asyncProperty(request, async (path) => {
        const { status, headers, text: body } = await service.api().get(path);
        if (status !== 200) return;
        const tag = headers.get('etag') as string;
        expect(answers.get(tag) ?? body, path).to.equal(body);
        answers.set(tag, body);
      }),
      {
        numRuns: 400,
        examples: [[`/products?name=n&version=${version}`], [`/products?name=n+version+${version}`]],
      },
    );
    expect(answers.size).to.be.above(100);
  });

  it('are one request, however their parts are cut', () => {
    const version = { checksum: 'a'.repeat(64), publishedAt: '2026-01-01T00:00:00.000Z' } as Version;
    const tagOf = (variant: readonly (string | number)[]) => validatorsOf(version, variant).etag;
    const part = fc.oneof(
      fc.string({ maxLength: 3 }),
      fc.constantFrom(' ', '"', '","', '\\', '\0'),
      fc.nat(3),
    );
    const variant = fc.array(part, { maxLength: 4 });
    fc.assert(
      fc.property(variant, variant, (one, other) => {
        expect(tagOf(one) === tagOf(other)).to.equal(JSON.stringify(one) === JSON.stringify(other));
      }),
      {
        examples: [
          [['a', 'b'], ['a b']],
          [['1'], [1]],
        ],
      },
    );
  });
});
