// A version in an unknown stored format: readers get 503, operators get the command to run, and an import repairs it.

import { expect } from 'chai';
import { products as productCollection } from '../shared/collections/products.ts';
import { productKeys as keys } from './support/keys.ts';
import { medref } from './support/medref.ts';
import { product } from './support/records.ts';
import { useService } from './support/service.ts';
import { send } from './support/wire.ts';

describe('a version in an unknown format', () => {
  const { redis, redisUrl, api, publish, importList, awaitLive, restartApi } = useService();
  const list = [product(1), product(2)];
  const advice = 'Run "medref import products".';

  async function publishInAnotherFormat(): Promise<number> {
    const version = await publish(list);
    const document = JSON.parse((await redis().get(keys.live)) as string);
    const text = JSON.stringify({ ...document, format: 5, exact: undefined, derived: {} });
    await redis().set(keys.live, text);
    await redis().hset(keys.versionDocuments, String(version), text);
    await restartApi();
    return version;
  }

  it('returns 503 on every data route, and reports the command to run', async () => {
    const version = await publishInAnotherFormat();
    for (const path of [
      '/products',
      '/products/1',
      '/drugs',
      '/products?name=drug',
      `/products?version=${version}`,
      `/products/changes?since=${version}`,
    ]) {
      const { status, headers, body } = await send(api(), path);
      expect([status, headers['retry-after']], `${path}: ${body}`).to.deep.equal([503, '5']);
    }
    expect(api().damage.at(-1)).to.equal(
      `Version ${version} of products is stored in format 5, which this release cannot read. ${advice}`,
    );
  });

  it('is shown by medref status with the command to run', async () => {
    await publishInAnotherFormat();
    const { code, stdout } = await medref(['status'], { REDIS_URL: redisUrl() });
    expect([code, stdout.includes(advice)], stdout).to.deep.equal([0, true]);
  });

  it('is replaced by the next import, although upstream is unchanged', async () => {
    const unknown = await publishInAnotherFormat();
    const { outcome, version, reason } = await importList(list, { force: false });
    expect(outcome, String(reason)).to.equal('published');
    await awaitLive(version as number, productCollection);
    const { status, body } = await send(api(), '/products');
    expect([status, JSON.parse(body.toString()).data]).to.deep.equal([200, list]);
    expect(version).to.be.greaterThan(unknown);
    expect((await send(api(), '/products/versions')).status).to.equal(200);
  });
});
