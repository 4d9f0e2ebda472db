// Tests that the log reports a service error when it begins, and not again for each request.

import { setTimeout as sleep } from 'node:timers/promises';
import { expect } from 'chai';
import { pino } from 'pino';
import { ServiceErrorLog } from '../../../api/admin/logs.ts';
import { fault, late, type ServiceError } from '../../../api/errors.ts';

const away: ServiceError = {
  cause: 'away',
  status: 503,
  message: 'x',
  retryAfter: 1,
  reason: 'Redis is away.',
};
const forbidden: ServiceError = {
  cause: 'forbidden',
  status: 500,
  message: 'x',
  retryAfter: null,
  reason: 'NOPERM',
};

function logged(options?: { endsAfterMs: number }) {
  const lines: Record<string, unknown>[] = [];
  const logger = pino(
    { level: 'info', base: null, timestamp: false },
    {
      write: (line: string) => void lines.push(JSON.parse(line)),
    },
  );
  return { lines, troubles: new ServiceErrorLog(logger, options) };
}

describe('the log of service errors', () => {
  it('logs each cause once, with its first request, also if two causes alternate', () => {
    const { lines, troubles } = logged();
    for (let n = 0; n < 100; n += 1)
      for (const trouble of [away, forbidden, late]) troubles.record(trouble, `${trouble.cause}-${n}`);
    expect(lines).to.deep.equal([
      {
        level: 40,
        cause: 'away',
        reason: 'Redis is away.',
        requestId: 'away-0',
        msg: 'Requests get 503.',
      },
      {
        level: 50,
        cause: 'forbidden',
        reason: 'NOPERM',
        requestId: 'forbidden-0',
        msg: 'Requests get 500.',
      },
      {
        level: 40,
        cause: 'late',
        reason: late.reason,
        requestId: 'late-0',
        msg: 'Requests get 503.',
      },
    ]);
  });

  it('logs it again after a while without it', async () => {
    const { lines, troubles } = logged({ endsAfterMs: 200 });
    for (let n = 0; n < 6; n += 1) {
      troubles.record(away, 'x');
      await sleep(50);
    }
    expect(lines, 'the same error continues').to.have.length(1);
    await sleep(400);
    troubles.record(away, 'x');
    expect(lines).to.have.length(2);
  });

  it('skips mistakes in the code, which are logged elsewhere', () => {
    const { lines, troubles } = logged();
    troubles.record(fault, 'x');
    expect(lines).to.deep.equal([]);
  });

  it('logs each damage once', () => {
    const { lines, troubles } = logged();
    for (const sentence of ['Block 0 is gone.', 'Block 1 is gone.', 'Block 0 is gone.'])
      troubles.recordDamage(sentence);
    expect(lines.map(({ level, msg }) => [level, msg])).to.deep.equal([
      [50, 'Block 0 is gone.'],
      [50, 'Block 1 is gone.'],
    ]);
  });
});
