import { expect } from 'chai';
import { parse } from 'yaml';
import { readSettings } from '../../config/settings.ts';
import { commands, read, settingsReadBy } from '../support/project-files.ts';

interface Service {
  command: string[];
  environment?: Record<string, string>;
  healthcheck?: { test: string[] };
  stop_grace_period?: string;
  tmpfs?: string[];
  ports?: string[];
  read_only?: boolean;
  restart?: string;
  user?: string;
  volumes?: string[];
}

describe('the compose file', () => {
  const { services } = parse(read('docker-compose.yml'), { merge: true }) as {
    services: Record<string, Service>;
  };
  const service = (name: string) => services[name] as Service;

  it('has Redis, the importer and the API, each with a health check and a restart policy', () => {
    expect(Object.keys(services)).to.deep.equal(['redis', 'importer', 'api']);
    for (const name of Object.keys(services)) {
      expect(service(name).healthcheck?.test, name).to.be.an('array');
      expect(service(name).restart, name).to.equal('unless-stopped');
    }
  });

  it('keeps Redis to itself, with an append-only file on a volume, and without eviction', () => {
    const { command, ports, volumes } = service('redis');
    expect(ports).to.equal(undefined);
    expect(volumes).to.deep.equal(['redis-data:/data']);
    expect(command.join(' ')).to.include('--appendonly yes').and.to.include('--maxmemory-policy noeviction');
  });

  it('runs importer and API as another user than root, on a read-only file system', () => {
    for (const name of ['importer', 'api'])
      expect(service(name)).to.include({ user: 'node', read_only: true });
  });

  it('sets nothing that is not a setting, and of each process every setting that it reads', () => {
    for (const [name, command] of [
      ['importer', 'schedule'],
      ['api', 'serve'],
    ] as const) {
      expect(Object.keys(service(name).environment ?? {}), name).to.have.members(settingsReadBy(command));
    }
  });

  it('passes each setting on as it is in the environment, but for addresses within the containers', () => {
    const fixed = {
      REDIS_URL: 'redis://redis:6379',
      ...{ API_HOST: '0.0.0.0', API_PORT: '3000', ADMIN_HOST: '0.0.0.0', ADMIN_PORT: '3001' },
    };
    for (const name of ['importer', 'api']) {
      for (const [setting, value] of Object.entries(service(name).environment ?? {})) {
        if (setting === 'BASE_URL') continue;
        const passedOn = `\${${setting}:-}`;
        expect(value, `${name}: ${setting}`).to.equal({ [setting]: passedOn, ...fixed }[setting]);
      }
    }
  });

  it('asks for the public address, and says what to set where it is not there', () => {
    const asked = /^\$\{BASE_URL:\?(Set BASE_URL to [^{}]+ such as (https:[^{}]+))\}$/;
    const [, , example = ''] = asked.exec(service('api').environment?.['BASE_URL'] ?? '') ?? [];
    expect(readSettings({ BASE_URL: example }).baseUrl, 'its example is taken').to.equal(example);
    expect(example).not.to.equal('');
  });

  it('publishes API and admin listener on the loopback address of the machine alone', () => {
    const { API_PORT, ADMIN_PORT } = service('api').environment ?? {};
    const published = [API_PORT, ADMIN_PORT].map((port) => `127.0.0.1:${port}:${port}`);
    expect(service('api').ports).to.deep.equal(published);
    expect(service('importer').ports).to.equal(undefined);
  });

  it('asks the API whether it is ready, and the importer when it last did something, where it can leave word of that', () => {
    for (const [name, word] of [
      ['importer', 'schedule'],
      ['api', 'serve'],
    ] as const) {
      expect(service(name).healthcheck?.test).to.deep.equal([
        ...['CMD', 'node', '/app/dist/bin/health-check.js', word],
      ]);
    }
    expect(service('importer').tmpfs).to.deep.equal(['/tmp']);
    expect(read('Dockerfile')).to.include('HEALTHCHECK').and.to.include('"/app/dist/bin/health-check.js"');
  });

  it('waits for each process for longer than its end may take', () => {
    const [, drainMs = ''] = /const drainMs = ([\d_]+);/.exec(read('bin/serving.ts')) ?? [];
    const graceOf = (name: string) => Number(/^(\d+)s$/.exec(service(name).stop_grace_period ?? '')?.[1]);
    expect(graceOf('api')).to.be.above(Number(drainMs.replace('_', '')) / 1000);
    expect(graceOf('importer')).to.be.above(30);
  });

  it('lets the other services scrape the metrics', () => {
    expect(service('api').environment).to.include({ ADMIN_HOST: '0.0.0.0', ADMIN_PORT: '3001' });
    expect(read('docs/OPERATIONS.md')).to.include('["api:3001"]');
  });

  it('runs commands that exist', () => {
    for (const name of ['importer', 'api']) expect(commands).to.include(service(name).command[0]);
  });
});
