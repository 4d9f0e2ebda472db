// Hosts as requests name them.

import { expect } from 'chai';

describe('isHost', () => {
  /** As it is in a process that has answered nobody yet. */
  async function freshIsHost(): Promise<(text: string) => boolean> {
    const url = new URL(`../../../api/requests/host.ts?fresh=${Math.random()}`, import.meta.url);
    return (await import(url.href)).isHost;
  }

  it('takes no empty host, not even for the first request of a process', async () => {
    const isHost = await freshIsHost();
    expect(isHost('')).to.equal(false);
    expect([isHost('a:80'), isHost(''), isHost('a:80')]).to.deep.equal([true, false, true]);
  });

  it('does not remember a host that is none', async () => {
    const isHost = await freshIsHost();
    for (const text of ['a b', '1.2.3.999', 'a:99999']) {
      expect([isHost(text), isHost(text)], text).to.deep.equal([false, false]);
    }
  });
});
