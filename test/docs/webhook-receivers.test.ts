import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { text } from 'node:stream/consumers';
import { setTimeout as sleep } from 'node:timers/promises';
import { expect } from 'chai';
import { examplesOf, missingProgram } from '../support/examples.ts';
import { medref } from '../support/medref.ts';
import { expectedSignature } from '../support/receiver.ts';
import { products } from '../support/records.ts';
import { useRedis } from '../support/redis-server.ts';
import { closedPort, sending, startUpstreamServer } from '../support/upstream-server.ts';

const secret = 'both-sides-know-it';

const runs = {
  js: { program: process.execPath, args: ['--input-type=module', '--eval'] },
  python: { program: 'python3', args: ['-c'] },
  sh: { program: 'sh', args: ['-c'] },
} as const;

describe('the webhook receivers of docs/CONFIGURATION.md', function () {
  this.timeout(60_000);
  const redis = useRedis();
  const receivers = examplesOf('docs/CONFIGURATION.md').filter(({ file }) => file?.startsWith('receiver.'));

  it('exist in each language', () => {
    expect(receivers.map(({ language }) => language)).to.deep.equal(['js', 'python']);
  });

  /** The body that a webhook of medref sends. */
  let body: string;
  before(async () => {
    const webhook = await startUpstreamServer(async (response, request) => {
      body = await text(request);
      response.end();
    });
    const upstream = await startUpstreamServer(sending({ data: products(3) }));
    await medref(['import', 'products'], {
      REDIS_URL: redis().url,
      PRODUCTS_URL: upstream.url().href,
      WEBHOOK_URL: webhook.url().href,
    });
    await Promise.all([webhook.close(), upstream.close()]);
  });

  for (const receiver of receivers) {
    const absent = missingProgram(receiver);
    const left = absent ? ` (left out: ${absent} is missing)` : '';
    it(`accept only requests with a valid signature: ${receiver.language}${left}`, async function () {
      if (absent) this.skip();
      const port = await closedPort();
      const { program, args } = runs[receiver.language];
      const running = spawn(program, [...args, receiver.code.replace('8080', String(port))], {
        env: { PATH: process.env['PATH'], WEBHOOK_SECRET: secret },
        stdio: ['ignore', 'pipe', 'inherit'],
      });
      const printed = text(running.stdout);
      try {
        const url = `http://127.0.0.1:${port}/`;
        while (!(await fetch(url).catch(() => null))) await sleep(20);
        const send = async (headers: Record<string, string>) =>
          (await fetch(url, { method: 'POST', body, headers })).status;
        expect(await send({})).to.equal(401);
        expect(await send({ 'medref-signature': expectedSignature(body, 'another') })).to.equal(401);
        expect(await send({ 'medref-signature': expectedSignature(body, secret) })).to.equal(204);
        await sleep(50);
      } finally {
        running.kill('SIGKILL');
        await once(running, 'close');
      }
      const lines = (await printed).trim().split('\n');
      expect(lines).to.have.length(1);
      expect(lines[0]).to.match(/^[0-9a-f-]{36} published products \d+$/);
    });
  }
});
