import fc from 'fast-check';
import { FollowedService, mirrorPlans } from '../proof/client-mirrors.ts';
import { isFull, noteCounts, seed } from '../proof/proof.ts';

describe('a mirror of the client library', function () {
  this.timeout(isFull ? 0 : 60_000);
  let service: FollowedService;
  before(async () => {
    service = await FollowedService.start();
  });
  after(() => service.stop());

  it('equals its announced version after each step, whatever breaks in between', async () => {
    await fc.assert(
      fc.asyncProperty(mirrorPlans, (plan) => service.run(plan)),
      { numRuns: isFull ? 300 : 8, seed, endOnFailure: true },
    );
    noteCounts(service.counts);
  });
});
