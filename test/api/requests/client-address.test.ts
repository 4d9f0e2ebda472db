import { expect } from 'chai';
import { networkOf } from '../../../api/requests/client-address.ts';

describe('the network that counts as one client', () => {
  const networks: Readonly<Record<string, string>> = {
    '10.0.0.9': '10.0.0.9',
    '::ffff:10.0.0.9': '10.0.0.9',
    '2001:db8:1:2:3:4:5:6': '2001:db8:1:2::/64',
    '2001:db8:1:2::': '2001:db8:1:2::/64',
    '2001:0DB8:0001:0002::7': '2001:db8:1:2::/64',
    '2001:db8::1': '2001:db8:0:0::/64',
    '::1': '0:0:0:0::/64',
    'fe80::1:2:3:4': 'fe80:0:0:0::/64',
    '': '',
  };
  for (const [address, network] of Object.entries(networks)) {
    it(`is ${network || 'nothing'} for ${address || 'a connection that is gone'}`, () => {
      expect(networkOf(address)).to.equal(network);
    });
  }
});
