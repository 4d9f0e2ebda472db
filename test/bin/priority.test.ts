// Tests the priority of an import's process, as the system reports it.

import { spawn } from 'node:child_process';
import { existsSync, readdirSync } from 'node:fs';
import { constants, getPriority } from 'node:os';
import { fileURLToPath } from 'node:url';
import { expect } from 'chai';
import { useRedis } from '../support/redis-server.ts';
import { upstreamServers } from '../support/upstream-server.ts';

describe('an import', () => {
  const redis = useRedis();
  const serve = upstreamServers();
  const entry = fileURLToPath(new URL('../../dist/bin/medref.js', import.meta.url));

  /** Returns the priorities of all threads of an import that was started with this niceness. */
  async function priorities(collection: string, niceness: number): Promise<number[]> {
    let begin = () => {};
    const begun = new Promise<void>((resolve) => {
      begin = resolve;
    });
    const upstream = await serve((response) => {
      response.write('[');
      begin();
    });
    const settings = { REDIS_URL: redis().url, [`${collection.toUpperCase()}_URL`]: upstream.url().href };
    const child = spawn('nice', ['-n', String(niceness), process.execPath, entry, 'import'], {
      env: { PATH: process.env['PATH'], LOG_LEVEL: 'silent', ...settings },
      stdio: 'ignore',
    });
    await begun;
    const threads = `/proc/${child.pid}/task`; // Only Linux has this folder.
    const found = existsSync(threads)
      ? readdirSync(threads).map((it) => getPriority(Number(it)))
      : [getPriority(child.pid)];
    child.kill('SIGKILL');
    return found;
  }

  it('has a low priority, with all of its threads', async () => {
    const low = Math.max(constants.priority.PRIORITY_BELOW_NORMAL, getPriority());
    expect(new Set(await priorities('products', 0))).to.deep.equal(new Set([low]));
  });

  it('keeps a lower priority from its start', async () => {
    const lower = Math.min(19, getPriority() + 15);
    expect(new Set(await priorities('companies', 15))).to.deep.equal(new Set([lower]));
  });
});
