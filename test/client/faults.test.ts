import fc from 'fast-check';
import { FollowedService, mirrorPlans } from '../proof/client-mirrors.ts';

describe('a mirror by the client library', function () {
  this.timeout(60_000);
  let service: FollowedService;
  before(async () => {
    service = await FollowedService.start();
  });
  after(() => service.stop());

  it('is the version that it says after each step, whatever breaks in between', async () => {
    await fc.assert(
      fc.asyncProperty(mirrorPlans, (plan) => service.run(plan)),
      { numRuns: 8, endOnFailure: true },
    );
  });
});
