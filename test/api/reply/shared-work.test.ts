import { expect } from 'chai';
import { SharedWork } from '../../../api/routes/changes.ts';

describe('shared work', () => {
  it('is done once for all who ask while it is under way, by its name', async () => {
    const shared = new SharedWork<number>();
    let done = 0;
    const work = async () => ++done;
    expect(await Promise.all(['a', 'a', 'b'].map((name) => shared.get(name, work)))).to.deep.equal([1, 1, 2]);
  });

  it('is done anew for who asks later, also where it failed', async () => {
    const shared = new SharedWork<string>();
    const failed = await shared.get('a', () => Promise.reject(new Error('once'))).catch(String);
    expect(failed).to.equal('Error: once');
    for (const what of ['one', 'other']) expect(await shared.get('a', async () => what)).to.equal(what);
  });
});
