import { setTimeout as sleep } from 'node:timers/promises';
import { expect } from 'chai';
import { pino } from 'pino';
import { type ImportOutcome, type ImportReport, reportOf, startReport } from '../../importer/report.ts';
import { createWebhook, type WebhookLimits, webhookLimits } from '../../importer/webhook.ts';
import { expectedSignature, receivers } from '../support/receiver.ts';
import { closedPort, refusing } from '../support/upstream-server.ts';

const secret = 'a-secret-that-no-log-has';

const short: WebhookLimits = { tryMs: 200, waitsMs: [20, 40], finishMs: 2_000, inProgress: 100 };

function report(outcome: ImportOutcome = 'published', facts: Partial<ImportReport> = {}): ImportReport {
  return startReport('products').end(outcome, {
    version: 7,
    previousVersion: 6,
    read: 3,
    written: 3,
    ...facts,
  });
}

/** Returns a logger and the lines that it has written. */
function keptLog() {
  const lines: Record<string, unknown>[] = [];
  const logger = pino({ level: 'trace' }, { write: (line) => void lines.push(JSON.parse(line)) });
  return { lines, logger, text: () => JSON.stringify(lines) };
}

describe('the webhook', () => {
  const startReceiver = receivers();
  const webhookOf = (url: URL, limits: Partial<WebhookLimits> = {}, log = keptLog()) => ({
    ...log,
    ...createWebhook({ webhookUrl: url, webhookSecret: secret }, log.logger, { ...short, ...limits }),
  });

  it('receives a signed JSON notice with the report', async () => {
    const { url, received } = await startReceiver();
    const webhook = webhookOf(url, { tryMs: 5_000 });
    const reported = report();
    const before = Date.now();
    webhook.notify(reported);
    await webhook.finish();
    expect(received).to.have.length(1);
    const [{ method, headers, body, notice } = expect.fail()] = received;
    expect(method).to.equal('POST');
    expect(headers['content-type']).to.equal('application/json');
    expect(headers['medref-signature']).to.equal(expectedSignature(body, secret));
    expect(Object.keys(notice)).to.deep.equal([
      ...['id', 'event', 'collection', 'version', 'time', 'report', 'candidate', 'by', 'why'],
    ]);
    expect(notice).to.deep.include({
      event: 'published',
      collection: 'products',
      version: 7,
      report: reportOf(reported),
    });
    expect(Date.parse(notice.time)).to.be.within(before, Date.now());
    expect(webhook.lines.filter(({ level }) => Number(level) >= 40)).to.deep.equal([]);
  });

  it('receives unsigned notices without a secret', async () => {
    const { url, received } = await startReceiver();
    const webhook = createWebhook({ webhookUrl: url, webhookSecret: undefined }, keptLog().logger, short);
    webhook.notify(report());
    await webhook.finish();
    expect(received[0]?.headers).not.to.have.property('medref-signature');
  });

  const events: [ImportOutcome, string | null][] = [
    ['published', 'published'],
    ['rolled-back', 'published'],
    ['refused', 'refused'],
    ['failed', 'failed'],
    ['unchanged', null],
    ['locked', null],
    ['paused', null],
    ['dry-run', null],
  ];
  for (const [outcome, event] of events) {
    it(`receives ${event === null ? 'nothing' : `"${event}"`} for ${outcome}`, async () => {
      const { url, received } = await startReceiver();
      const webhook = webhookOf(url);
      webhook.notify(report(outcome));
      await webhook.finish();
      expect(received.map(({ notice }) => notice.event)).to.deep.equal(event === null ? [] : [event]);
    });
  }

  it('receives the same bytes again until it responds with 2xx', async () => {
    const { url, received } = await startReceiver((response, _request, nth) => {
      response.writeHead(nth === 1 ? 500 : nth === 2 ? 404 : 204).end();
    });
    const webhook = webhookOf(url);
    webhook.notify(report());
    await webhook.finish();
    expect(received).to.have.length(3);
    expect(new Set(received.map(({ body }) => body)).size).to.equal(1);
    expect(webhook.lines.filter(({ level }) => level === 50)).to.deep.equal([]);
  });

  it('receives different ids for different notices', async () => {
    const { url, received } = await startReceiver();
    const webhook = webhookOf(url);
    webhook.notify(report());
    webhook.notify(report());
    await webhook.finish();
    expect(new Set(received.map(({ notice }) => notice.id)).size).to.equal(2);
  });

  it('is retried with growing waits, and the dropped notice is logged', async () => {
    const at: number[] = [];
    const { url, received } = await startReceiver((response) => {
      at.push(performance.now());
      response.writeHead(500).end();
    });
    const webhook = webhookOf(url, { waitsMs: [100, 300] });
    webhook.notify(report());
    await webhook.finish();
    expect(received).to.have.length(3);
    const [first = 0, second = 0, third = 0] = at;
    expect(second - first).to.be.at.least(95);
    expect(third - second).to.be.at.least(295);
    const last = webhook.lines.at(-1);
    expect(last).to.deep.include({ level: 50, tries: 3, reason: 'It responded with 500.' });
    expect(last?.['notice']).to.deep.include({ event: 'published', collection: 'products', version: 7 });
    expect(last).to.have.nested.property('notice.id', received[0]?.notice.id);
  });

  it('is retried for at most ten minutes in production', () => {
    const { waitsMs } = webhookLimits;
    expect(waitsMs).to.deep.equal([...waitsMs].sort((a, b) => a - b));
    expect(waitsMs.reduce((sum, it) => sum + it, 0)).to.be.below(600_000);
    expect(webhookLimits.finishMs).to.be.at.most(5_000);
  });

  it('is retried after a timeout', async () => {
    const { url, received } = await startReceiver((response, _request, nth) => {
      if (nth > 1) response.end();
    });
    const webhook = webhookOf(url);
    webhook.notify(report());
    await webhook.finish();
    expect(received).to.have.length(2);
    expect(webhook.text()).to.include('It did not respond within 0.2 s.');
  });

  it('is logged, and nothing else happens, while its server is down', async () => {
    const webhook = webhookOf(new URL(`http://127.0.0.1:${await closedPort()}/x`));
    webhook.notify(report());
    await webhook.finish();
    expect(webhook.lines.at(-1)).to.deep.include({
      level: 50,
      reason: 'It cannot be reached (ECONNREFUSED).',
    });
  });

  it('is not followed to redirects', async () => {
    const elsewhere = await startReceiver();
    const { url } = await startReceiver(refusing(307, { location: elsewhere.url.href }));
    const webhook = webhookOf(url);
    webhook.notify(report());
    await webhook.finish();
    expect(elsewhere.received).to.deep.equal([]);
    expect(webhook.lines.at(-1)).to.deep.include({
      reason: 'It responded with 307, and redirects are not followed.',
    });
  });

  it('delays only the end of a command, for a limited time', async () => {
    const { url, received } = await startReceiver(() => undefined); // It never responds.
    const webhook = webhookOf(url, { tryMs: 60_000, finishMs: 300 });
    const start = performance.now();
    webhook.notify(report());
    expect(performance.now() - start).to.be.below(250);
    await webhook.finish();
    expect(performance.now() - start).to.be.within(290, 2_000);
    expect(received).to.have.length(1);
    expect(webhook.lines.map(({ level, reason }) => [level, reason])).to.deep.equal([
      [50, 'It had not responded when the command ended.'],
    ]);
  });

  it('may respond with an endless body, which is not awaited', async () => {
    let hasClosed = false;
    const { url } = await startReceiver((response) => {
      response.on('close', () => {
        hasClosed = true;
      });
      response.write('something');
    });
    const webhook = webhookOf(url, { tryMs: 60_000 });
    webhook.notify(report());
    while (!hasClosed) await sleep(5);
    await webhook.finish();
    expect(webhook.lines.at(-1)).to.include({ msg: 'The webhook accepted a notice.' });
  });

  it('gets no retry after the end of the command', async () => {
    const { url, received } = await startReceiver(refusing(500));
    const webhook = webhookOf(url, { waitsMs: [60_000], finishMs: 200 });
    webhook.notify(report());
    await webhook.finish();
    expect(received).to.have.length(1);
    expect(webhook.lines.at(-1)).to.deep.include({ level: 50, tries: 1, reason: 'It responded with 500.' });
  });

  it('does not delay a command without notices', async () => {
    const webhook = webhookOf(new URL('http://127.0.0.1:1/'));
    const start = performance.now();
    await webhook.finish();
    expect(performance.now() - start).to.be.below(250);
  });

  it('has a limit of notices in progress; a further one is logged as dropped', async () => {
    const { url, received } = await startReceiver(() => undefined);
    const webhook = webhookOf(url, { inProgress: 2, finishMs: 300, tryMs: 60_000 });
    for (let n = 0; n < 3; n++) webhook.notify(report());
    expect(webhook.lines.at(-1)).to.have.property('level', 50);
    expect(webhook.lines.at(-1)?.['msg']).to.match(/too many/);
    await webhook.finish();
    expect(received).to.have.length(2);
  });

  it('accepts notices again when earlier ones have ended', async () => {
    const { url, received } = await startReceiver();
    const webhook = webhookOf(url, { inProgress: 1 });
    webhook.notify(report());
    while (received.length === 0 || !webhook.text().includes('accepted a notice')) await sleep(5);
    webhook.notify(report());
    await webhook.finish();
    expect(received).to.have.length(2);
  });

  it('is logged without its path and secret', async () => {
    const { url } = await startReceiver(refusing(500));
    const refused = webhookOf(url);
    refused.notify(report());
    await refused.finish();
    const unreachable = webhookOf(new URL(`http://127.0.0.1:1${url.pathname}?key=of-a-path-that-is-secret`));
    unreachable.notify(report());
    await unreachable.finish();
    const text = refused.text() + unreachable.text();
    expect(text).to.include(url.origin);
    expect(text).not.to.include('of-a-path-that-is-secret');
    expect(text).not.to.include(secret);
  });
});
