// Tests webhooks of commands: which events they report, when, and how long a command waits for them at its end.

import { setTimeout as sleep } from 'node:timers/promises';
import { expect } from 'chai';
import type { ImportReport } from '../../importer/report.ts';
import { connectForWriting, type Redis } from '../../shared/redis/connections.ts';
import { aheadOfClock } from '../support/importing.ts';
import { companyKeys, productKeys as keys } from '../support/keys.ts';
import { beginMedref, medref as run } from '../support/medref.ts';
import { expectedSignature, type Receiver, receivers } from '../support/receiver.ts';
import { companies, products } from '../support/records.ts';
import { useRedis } from '../support/redis-server.ts';
import { refusing, sending, upstreamServers } from '../support/upstream-server.ts';

const secret = 'what-both-sides-know';

describe('commands with a webhook', function () {
  this.timeout(60_000);
  const server = useRedis();
  const startUpstream = upstreamServers();
  const startReceiver = receivers();
  let redis: Redis;
  let receiver: Receiver;
  let list: readonly unknown[];
  let settings: Record<string, string>;
  before(async () => {
    redis = await connectForWriting(server().url);
  });
  after(() => redis.disconnect());
  beforeEach(async () => {
    await redis.flushall();
    for (const { next } of [keys, companyKeys]) await redis.set(next, aheadOfClock);
    list = products(3);
    const upstream = await startUpstream((...all) => sending(list)(...all));
    receiver = await startReceiver();
    settings = {
      ...{ REDIS_URL: server().url, PRODUCTS_URL: upstream.url().href },
      ...{ WEBHOOK_URL: receiver.url.href, WEBHOOK_SECRET: secret },
    };
  });

  const medref = (command: string, others: Record<string, string> = {}) =>
    run(command.split(' '), { ...settings, ...others });
  const events = () => receiver.received.map(({ notice }) => notice.event);
  const importsOf = async (command: string) =>
    (await medref(`${command} --json`)).json<{ imports: ImportReport[] }>().imports;

  it('send a publication with its report, signed', async () => {
    const [report] = await importsOf('import');
    const [{ body, headers, notice } = expect.fail()] = receiver.received;
    expect(notice).to.deep.include({ event: 'published', version: report?.version, report });
    expect(headers['medref-signature']).to.equal(expectedSignature(body, secret));
  });

  it('send a refusal, and a failure', async () => {
    await medref('import');
    list = [];
    const [refused] = await importsOf('import');
    const [failed] = (await medref('import --json', { PRODUCTS_URL: 'file:///none/here' })).json<{
      imports: ImportReport[];
    }>().imports;
    expect(events()).to.deep.equal(['published', 'refused', 'failed']);
    expect(receiver.received.slice(1).map(({ notice }) => notice.report)).to.deep.equal([refused, failed]);
  });

  it('send failures because Redis is unavailable', async () => {
    expect((await medref('import', { REDIS_URL: 'redis://127.0.0.1:1' })).code).to.equal(1);
    expect(events()).to.deep.equal(['failed']);
    await medref('import --dry-run', { REDIS_URL: 'redis://127.0.0.1:1' });
    expect(events()).to.deep.equal(['failed']);
  });

  it('send the publication of a rollback', async () => {
    await medref('import');
    list = products(4);
    await medref('import --force');
    const { version } = (await medref('rollback products --json')).json<{ version: number }>();
    expect(events()).to.deep.equal(['published', 'published', 'published']);
    const last = receiver.received.at(-1)?.notice;
    expect(last).to.deep.include({ version });
    expect(last?.report).to.deep.include({ outcome: 'rolled-back', removed: 1 });
  });

  it('send nothing for unchanged imports, dry runs and locks', async () => {
    await medref('import');
    await medref('import');
    await medref('import --dry-run');
    await medref('import --dry-run', { PRODUCTS_URL: 'file:///none/here' });
    await redis.set(keys.lock, '{"holder":"another","since":"now"}');
    expect((await medref('import')).code).to.equal(4);
    expect(events()).to.deep.equal(['published']);
  });

  it('wait a few seconds at the end for a slow or missing webhook, after all output', async () => {
    const slow = await startReceiver(() => undefined); // It never responds.
    const upstream = await startUpstream(sending(companies(2)));
    const start = performance.now();
    const others = { COMPANIES_URL: upstream.url().href, WEBHOOK_URL: slow.url.href };
    const command = beginMedref(['import'], { ...settings, ...others });
    const unheard = medref('import', { KEY_PREFIX: 'other', WEBHOOK_URL: 'http://127.0.0.1:1/hook' });

    await command.line(/companies +published \d/);
    expect(performance.now() - start, 'printed before the wait for the webhook').to.be.below(4_500);
    const { code, stderr } = await command.ended;
    expect(performance.now() - start).to.be.within(4_900, 12_000);
    expect(code).to.equal(0);
    expect(slow.received.map(({ notice }) => notice.collection)).to.deep.equal(['products', 'companies']);
    const [first, second] = slow.received.map(({ notice }) => Date.parse(notice.time));
    expect(Number(second) - Number(first), 'companies did not wait').to.be.below(4_000);
    expect(stderr.match(/It had not responded when the command ended/g)).to.have.length(2);

    const { code: itsCode, stderr: itsLog } = await unheard;
    expect(itsCode).to.equal(0);
    const last = JSON.parse(itsLog.trim().split('\n').at(-1) ?? '');
    expect(last).to.deep.include({ level: 50, webhook: 'http://127.0.0.1:1' });
    expect(last.notice).to.include.keys('id', 'event', 'collection', 'version');
  });

  it('send a scheduled import that could not start', async () => {
    await redis.lpush(keys.lock, 'what is no lock');
    const scheduling = beginMedref(['schedule', '--json'], settings);
    while (receiver.received.length === 0) await sleep(20);
    const [{ notice } = expect.fail()] = receiver.received;
    expect(notice).to.deep.include({ event: 'failed', collection: 'products', version: null });
    expect(notice.report.reason).to.match(/WRONGTYPE/);
    expect((await scheduling.stop()).code).to.equal(0);
  });

  it('send notices of the schedule, with retries in the background', async () => {
    const flaky = await startReceiver((response, request, nth) =>
      nth === 1 ? refusing(500)(response, request, nth) : void response.end(),
    );
    const scheduling = beginMedref(['schedule', '--json'], { ...settings, WEBHOOK_URL: flaky.url.href });
    while (flaky.received.length < 2) await sleep(20);
    const [first, second] = flaky.received;
    expect(second?.body).to.equal(first?.body);
    expect(first?.notice.event).to.equal('published');
    expect((await scheduling.stop()).code).to.equal(0);
  });

  it('end only after the retries succeeded, as the schedule does', async () => {
    const flaky = await startReceiver((response, request, nth) =>
      nth === 1 ? refusing(500)(response, request, nth) : void response.end(),
    );
    const scheduling = beginMedref(['schedule'], { ...settings, WEBHOOK_URL: flaky.url.href });
    while (flaky.received.length === 0) await sleep(20);
    expect((await scheduling.stop()).code).to.equal(0);
    expect(flaky.received).to.have.length(2);
  });
});
