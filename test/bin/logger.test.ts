import { expect } from 'chai';
import { createLogger } from '../../bin/session.ts';
import { readSettings } from '../../config/settings.ts';

describe('the log', () => {
  it('drops the arguments of a failed Redis command, which may hold a record or a key', () => {
    const lines: string[] = [];
    const logger = createLogger({ settings: readSettings({}), log: (line) => void lines.push(line) });
    const error = Object.assign(new Error('OOM command not allowed'), {
      name: 'ReplyError',
      command: { name: 'hset', args: ['medref:keys', 'the secret'] },
    });
    logger.error({ err: error }, 'It failed.');
    expect(lines).to.have.length(1);
    expect(lines[0]).not.to.include('the secret');
    const { err } = JSON.parse(lines[0] ?? '') as { err: object };
    expect(Object.keys(err)).to.deep.equal(['type', 'message', 'stack']);
    expect(err).to.deep.include({ type: 'ReplyError', message: 'OOM command not allowed' });
  });
});
