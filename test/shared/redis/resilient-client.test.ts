// Tests events of a Redis client that no command reports. A promise that no code handles fails the process of the test.

import { getEventListeners, once } from 'node:events';
import { type AddressInfo, connect, createServer, type Server, type Socket } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { expect } from 'chai';
import type { Redis as OneServer } from 'ioredis';
import {
  connectForListening,
  connectForServing,
  connectForWriting,
} from '../../../shared/redis/connections.ts';
import { useRedis } from '../../support/redis-server.ts';
import { closedPort } from '../../support/upstream-server.ts';
import { connectTo, until } from '../../topologies/servers.ts';

describe('a client of Redis', () => {
  const servers = [useRedis(), useRedis()] as const;
  const looks: OneServer[] = [];
  /** A server whose address leads to one of two Redis servers, as a name or a virtual address does. */
  let front: Server;
  let leadsTo: number;
  const held = new Set<Socket>();
  const url = () => `redis://127.0.0.1:${(front.address() as AddressInfo).port}`;
  before(async () => {
    looks.push(...servers.map((server) => connectTo(server().port)));
    front = createServer((client) => {
      const server = connect(leadsTo, '127.0.0.1');
      for (const socket of [client, server]) held.add(socket.on('error', () => undefined));
      client.pipe(server).pipe(client);
    });
    await once(front.listen(0, '127.0.0.1'), 'listening');
  });
  beforeEach(async () => {
    leadsTo = servers[0]().port;
    for (const look of looks) await look.replicaof('NO', 'ONE');
  });
  after(() => {
    for (const look of looks) look.disconnect();
    for (const socket of held) socket.destroy();
    front.close();
  });
  const [former, next] = [() => looks[0] as OneServer, () => looks[1] as OneServer];
  const failOver = async () => {
    await former().replicaof('127.0.0.1', servers[1]().port);
    leadsTo = servers[1]().port;
  };

  it('for writing, finds the next primary at the same address and loses no command', async () => {
    const writing = await connectForWriting(url());
    try {
      await failOver();
      expect(await writing.set('medref:probe', 'here')).to.equal('OK');
      expect(await next().get('medref:probe')).to.equal('here');
    } finally {
      writing.disconnect();
    }
  });

  it('for serving, fails at once when a demoted primary refuses, and finds the next one', async () => {
    const serving = connectForServing(url());
    try {
      await once(serving, 'ready');
      await failOver();
      const refusal = await serving.set('medref:probe', 'there').catch(({ message }: Error) => message);
      expect(refusal).to.match(/^READONLY /);
      await until(async () => (await serving.set('medref:probe', 'there')) === 'OK', 'the next one is found');
      expect(await next().get('medref:probe')).to.equal('there');
    } finally {
      serving.disconnect();
    }
  });

  it('does not reconnect for each write that a replica refuses', async () => {
    const serving = connectForServing(url());
    let connections = 0;
    serving.on('ready', () => {
      connections += 1;
    });
    try {
      await once(serving, 'ready');
      await former().replicaof('127.0.0.1', servers[1]().port);
      const ends: string[] = [];
      while (ends.length < 20)
        ends.push(await serving.set('medref:probe', 'x').catch(({ message }: Error) => message.slice(0, 8)));
      await until(async () => (await serving.get('medref:probe')) !== 'x', 'it is there');
      for (let n = 0; n < 5; n += 1)
        expect(await serving.set('medref:probe', 'x').catch(({ message }: Error) => message)).to.match(
          /^READONLY /,
        );
      await sleep(50);
      expect(connections).to.equal(2);
    } finally {
      serving.disconnect();
    }
  });

  it('for listening, continues if it may not subscribe again', async () => {
    await former().call('ACL', 'SETUSER', 'listener', 'on', '>word', 'allkeys', 'allcommands', 'allchannels');
    const listener = connectForListening(servers[0]().url.replace('//', '//listener:word@'));
    try {
      await listener.subscribe('medref:announcements');
      await former().call('ACL', 'SETUSER', 'listener', 'resetchannels');
      await former().call('CLIENT', 'KILL', 'TYPE', 'pubsub');
      await once(listener, 'ready');
      await sleep(50); // By now, Redis has refused the subscription.
      expect(await listener.get('medref:announcements')).to.equal(null);
    } finally {
      listener.disconnect();
    }
  });

  it('that is given up before it is ready removes its listener from the signal', async () => {
    const { signal } = new AbortController();
    const failure = await connectForWriting(`redis://127.0.0.1:${await closedPort()}`, { signal }).catch(
      (error: Error) => error,
    );
    expect(failure).to.be.an('error');
    expect(getEventListeners(signal, 'abort')).to.deep.equal([]);
  });

  it('of unreachable Sentinels reports that, retries, and ends when closed', async () => {
    const serving = connectForServing(`redis+sentinel://127.0.0.1:${await closedPort()}/medref-master`);
    const reported: string[] = [];
    serving.on('error', ({ message }: Error) => reported.push(message));
    await until(async () => reported.length > 2, 'they are asked again');
    expect(new Set(reported.map((it) => it.slice(0, 29)))).to.deep.equal(
      new Set(['All sentinels are unreachable']),
    );
    serving.disconnect();
    await new Promise((resolve) => serving.once('end', resolve));
    reported.length = 0;
    await sleep(600);
    expect(reported).to.deep.equal([]);
  });
});
