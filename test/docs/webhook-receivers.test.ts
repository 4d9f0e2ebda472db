// The receivers of docs/OPERATIONS.md, run as they stand there but for their port, and told by a real webhook.

import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { setTimeout as sleep } from 'node:timers/promises';
import { expect } from 'chai';
import { pino } from 'pino';
import { startReport } from '../../importer/report.ts';
import { createWebhook } from '../../importer/webhook.ts';
import { examplesOf, missingProgram } from '../support/examples.ts';
import { closedPort } from '../support/upstream-server.ts';

const secret = 'both-sides-know-it';

const runs = {
  js: { program: process.execPath, args: ['--input-type=module', '--eval'] },
  python: { program: 'python3', args: ['-c'] },
  sh: { program: 'sh', args: ['-c'] },
} as const;

describe('the receivers of docs/OPERATIONS.md', function () {
  this.timeout(60_000);
  const receivers = examplesOf('docs/OPERATIONS.md').filter(({ file }) => file?.startsWith('receiver.'));
  let child: ChildProcess | undefined;
  afterEach(async () => {
    if (!child || child.exitCode !== null) return;
    child.kill('SIGKILL');
    await once(child, 'close');
  });

  it('are one for each language', () => {
    expect(receivers.map(({ language }) => language)).to.deep.equal(['js', 'python']);
  });

  for (const receiver of receivers) {
    const title = `take what is signed with the secret, and nothing else: ${receiver.language}`;
    const absent = missingProgram(receiver);
    if (absent) {
      it.skip(`${title} (left out: there is no ${absent} on this machine)`);
      continue;
    }
    it(title, async () => {
      const port = await closedPort();
      const { program, args } = runs[receiver.language];
      const running = spawn(program, [...args, receiver.code.replace('8080', String(port))], {
        env: { PATH: process.env['PATH'], WEBHOOK_SECRET: secret },
        stdio: ['ignore', 'pipe', 'inherit'],
      });
      child = running;
      let printed = '';
      running.stdout.on('data', (chunk) => {
        printed += chunk;
      });
      const webhookUrl = new URL(`http://127.0.0.1:${port}/`);
      while (!(await fetch(webhookUrl).catch(() => null))) await sleep(20);
      const tell = async (webhookSecret: string | undefined, version: number) => {
        const lines: Record<string, unknown>[] = [];
        const logger = pino({ level: 'trace' }, { write: (line) => void lines.push(JSON.parse(line)) });
        const limits = { tryMs: 5_000, waitsMs: [], finishMs: 5_000, underWay: 1 };
        const webhook = createWebhook({ webhookUrl, webhookSecret }, logger, limits);
        webhook.tell(startReport('products').end('published', { version }));
        await webhook.finish();
        return lines.at(-1);
      };
      expect(await tell('another-secret', 1)).to.have.property('reason', 'It answered 401.');
      expect(await tell(undefined, 2)).to.have.property('reason', 'It answered 401.');
      expect(await tell(secret, 3)).to.include({ msg: 'The webhook took a notice.' });
      while (!printed.endsWith('\n')) await once(running.stdout, 'data');
      expect(printed).to.match(/^[0-9a-f-]{36} published products 3\n$/);
    });
  }
});
