import { execFile } from 'node:child_process';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { cp, mkdtemp, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { expect } from 'chai';
import { parse, parseAllDocuments } from 'yaml';
import { onPath } from '../bench/installed.ts';
import { exitCodes } from '../bin/exit-codes.ts';
import { readSettings, settingDefinitions } from '../config/settings.ts';
import { isCronLine } from '../importer/schedule.ts';

const run = promisify(execFile);
const root = fileURLToPath(new URL('..', import.meta.url));
const read = (file: string) => readFileSync(join(root, file), 'utf8');

/** Commands that there are. */
const commands = [...read('bin/medref.ts').matchAll(/^command\('(\w+)'/gm)].map(([, name = '']) => name);

/**
 * The names of the settings that a process reads: `serve` those that it names, `schedule` those that it names and all
 * that `serve` does not, since it hands all of them on to the import.
 */
function settingsReadBy(command: 'serve' | 'schedule'): string[] {
  const known = settingDefinitions.map(({ name }) => name);
  const namedIn = (file: string) => {
    const words = new Set(read(file).match(/\w+/g));
    return known.filter((name) =>
      words.has(name.toLowerCase().replace(/_(\w)/g, (_, letter) => letter.toUpperCase())),
    );
  };
  const ofServe = namedIn('bin/commands/serve.ts');
  if (command === 'serve') return ofServe;
  const ofSchedule = namedIn('bin/commands/schedule.ts');
  return known.filter((name) => ofSchedule.includes(name) || !ofServe.includes(name));
}

interface Service {
  command: string[];
  environment?: Record<string, string>;
  healthcheck?: { test: string[] };
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
        const passedOn = `\${${setting}:-}`;
        expect(value, `${name}: ${setting}`).to.equal({ [setting]: passedOn, ...fixed }[setting]);
      }
    }
  });

  it('publishes API and admin listener on the loopback address of the machine alone', () => {
    const { API_PORT, ADMIN_PORT } = service('api').environment ?? {};
    const published = [API_PORT, ADMIN_PORT].map((port) => `127.0.0.1:${port}:${port}`);
    expect(service('api').ports).to.deep.equal(published);
    expect(service('importer').ports).to.equal(undefined);
  });

  it('runs commands that exist', () => {
    for (const name of ['importer', 'api']) expect(commands).to.include(service(name).command[0]);
  });
});

describe('the systemd units', () => {
  const units = [
    { unit: 'medref-api', command: 'serve' },
    { unit: 'medref-importer', command: 'schedule' },
  ];
  const linesOf = (unit: string) => read(`deploy/systemd/${unit}.service`).split('\n');

  it('are one for the API and one for the importer', () => {
    const files = readdirSync(join(root, 'deploy/systemd'));
    expect(files).to.have.members(units.map(({ unit }) => `${unit}.service`));
  });

  it('run commands that exist, from the file that the build makes', () => {
    const { bin } = JSON.parse(read('package.json')) as { bin: { medref: string } };
    for (const { unit, command } of units) {
      expect(commands).to.include(command);
      expect(linesOf(unit)).to.include(`ExecStart=/usr/bin/node /opt/medref/${bin.medref} ${command}`);
    }
  });

  it('start again after every end but that of wrong settings, and give time to end in order', () => {
    for (const { unit } of units) {
      expect(linesOf(unit)).to.include.members([
        ...['Restart=on-failure', 'StartLimitIntervalSec=0', `RestartPreventExitStatus=${exitCodes.usage}`],
      ]);
      const [, seconds] = /^TimeoutStopSec=(\d+)$/m.exec(linesOf(unit).join('\n')) ?? [];
      expect(Number(seconds), unit).to.be.above(10);
    }
  });

  it('may do nothing that they need not', () => {
    for (const { unit } of units) {
      expect(linesOf(unit), unit).to.include.members([
        ...['DynamicUser=yes', 'NoNewPrivileges=yes', 'CapabilityBoundingSet=', 'ProtectSystem=strict'],
        ...['ProtectHome=yes', 'PrivateTmp=yes', 'PrivateDevices=yes', 'SystemCallFilter=@system-service'],
      ]);
    }
  });

  const analyze = onPath('systemd-analyze');
  const missing = analyze ? '' : ' (left out: systemd-analyze is not installed)';
  (analyze ? it : it.skip)(`are understood by systemd${missing}`, async () => {
    const folder = await mkdtemp(join(tmpdir(), 'medref-units-'));
    try {
      const files = units.map(({ unit }) => join(folder, `${unit}.service`));
      for (const [n, { unit }] of units.entries()) {
        // It looks for the program, too, which is elsewhere on some machines.
        const text = linesOf(unit).join('\n').replace('/usr/bin/node', process.execPath);
        await writeFile(files[n] as string, text);
      }
      const { stdout, stderr } = await run(analyze as string, ['verify', '--man=no', ...files]);
      const complaints = `${stdout}${stderr}`.split('\n').filter((line) => line.includes(folder));
      expect(complaints).to.deep.equal([]);
    } finally {
      await rm(folder, { recursive: true, force: true });
    }
  });
});

interface Manifest {
  apiVersion: string;
  kind: string;
  metadata: { name: string };
  data?: Record<string, unknown>;
  stringData?: Record<string, unknown>;
  spec?: {
    replicas?: number;
    strategy?: { type: string };
    selector?: Record<string, unknown> & { matchLabels?: Record<string, string> };
    ports?: { targetPort: string }[];
    template?: { metadata: { labels: Record<string, string> }; spec: PodSpec };
  };
}

interface PodSpec {
  enableServiceLinks: boolean;
  securityContext: object;
  containers: [Container];
}

interface Container {
  args: string[];
  image: string;
  envFrom: { configMapRef?: { name: string }; secretRef?: { name: string } }[];
  env?: unknown;
  ports?: { name: string; containerPort: number }[];
  securityContext: object;
  lifecycle?: unknown;
  [probe: `${string}Probe`]: { httpGet: { path: string; port: string } } | undefined;
}

describe('the Kubernetes manifests', () => {
  const documents = parseAllDocuments(read('deploy/kubernetes/medref.yaml'));
  const manifests = documents.map((it) => it.toJS() as Manifest);
  const found = (kind: string, name: string) => {
    const its = manifests.filter((it) => it.kind === kind && it.metadata.name === name);
    expect(its, `${kind} ${name}`).to.have.length(1);
    return its[0] as Manifest;
  };
  const processes = [
    { name: 'medref-api', command: 'serve' },
    { name: 'medref-importer', command: 'schedule' },
  ] as const;
  const podOf = (name: string) => found('Deployment', name).spec?.template?.spec as PodSpec;
  const containerOf = (name: string) => podOf(name).containers[0];

  /** The environment that a container is given. */
  function environmentOf(name: string): Record<string, unknown> {
    const { env, envFrom } = containerOf(name);
    expect(env).to.equal(undefined);
    return Object.assign(
      {},
      ...envFrom.map(({ configMapRef, secretRef }) =>
        configMapRef
          ? found('ConfigMap', configMapRef.name).data
          : found('Secret', secretRef?.name as string).stringData,
      ),
    );
  }

  it('are YAML, each with a version, a kind and a name, none of them twice', () => {
    for (const document of documents) expect([...document.errors, ...document.warnings]).to.deep.equal([]);
    for (const { apiVersion, kind, metadata } of manifests) {
      expect(apiVersion, kind).to.match(/^(?:[a-z0-9.]+\/)?v1$/);
      expect(metadata.name, kind).to.match(/^[a-z][a-z-]+$/);
    }
    const names = manifests.map(({ kind, metadata }) => `${kind} ${metadata.name}`);
    expect(new Set(names).size).to.equal(names.length);
  });

  it('run commands that exist, of the API several processes, of the importer one at a time', () => {
    for (const { name, command } of processes) {
      expect(containerOf(name).args).to.deep.equal([command]);
      expect(commands).to.include(command);
    }
    expect(found('Deployment', 'medref-api').spec?.replicas).to.be.above(1);
    expect(found('Deployment', 'medref-importer').spec).to.deep.include({
      ...{ replicas: 1, strategy: { type: 'Recreate' } },
    });
  });

  it('set nothing but settings that the process reads, to what it takes', () => {
    for (const { name, command } of processes) {
      const environment = environmentOf(name);
      expect(settingsReadBy(command), name).to.include.members(Object.keys(environment));
      for (const [setting, value] of Object.entries(environment)) {
        expect(value, `${setting}: Kubernetes takes text alone`).to.be.a('string');
      }
      expect(() => readSettings(environment as Record<string, string>, isCronLine)).not.to.throw();
      expect(podOf(name).enableServiceLinks, `${name}: variables of Services`).to.equal(false);
    }
  });

  it('ask /health/live whether the API runs, and /health/ready whether it can answer', () => {
    const { livenessProbe, readinessProbe, startupProbe, ports } = containerOf('medref-api');
    expect(livenessProbe?.httpGet).to.deep.equal({ path: '/health/live', port: 'http' });
    expect(startupProbe?.httpGet).to.deep.equal({ path: '/health/live', port: 'http' });
    expect(readinessProbe?.httpGet).to.deep.equal({ path: '/health/ready', port: 'http' });
    const { API_PORT, ADMIN_PORT } = environmentOf('medref-api');
    expect(ports).to.deep.equal([
      { name: 'http', containerPort: Number(API_PORT) },
      { name: 'metrics', containerPort: Number(ADMIN_PORT) },
    ]);
    for (const path of ['/health/live', '/health/ready']) {
      expect(read('api/routes/health.ts')).to.include(`path: '${path}'`);
    }
  });

  it('choose the pods that they mean, and offer the data listener alone', () => {
    const labels = Object.fromEntries(
      processes.map(({ name }) => [name, found('Deployment', name).spec?.template?.metadata.labels]),
    );
    for (const { name } of processes) {
      expect(found('Deployment', name).spec?.selector?.matchLabels).to.deep.equal(labels[name]);
    }
    const { selector, ports } = found('Service', 'medref-api').spec ?? {};
    expect(selector).to.deep.equal(labels['medref-api']);
    expect(ports?.map(({ targetPort }) => targetPort)).to.deep.equal(['http']);
    const budget = found('PodDisruptionBudget', 'medref-api').spec;
    expect(budget?.selector?.matchLabels).to.deep.equal(labels['medref-api']);
  });

  it('run as another user than root, on a read-only file system, with no capability', () => {
    for (const { name } of processes) {
      expect(podOf(name).securityContext).to.deep.include({ runAsNonRoot: true, runAsUser: 1000 });
      expect(containerOf(name).securityContext).to.deep.equal({
        allowPrivilegeEscalation: false,
        readOnlyRootFilesystem: true,
        capabilities: { drop: ['ALL'] },
      });
    }
  });
});

describe('the image', function () {
  this.timeout(60_000);
  const lines = read('Dockerfile').split('\n');
  const copied = lines.flatMap((line) => {
    const words = line.split(' ');
    return words[0] === 'COPY' && !line.includes('--from') ? words.slice(1, -1) : [];
  });

  it('is built in two stages on the same Node, and runs as another user than root', () => {
    const stages = lines.filter((line) => line.startsWith('FROM'));
    expect(stages.map((line) => line.split(' ')[1])).to.deep.equal(Array(2).fill('node:26-trixie-slim'));
    expect(lines.indexOf('USER node')).to.be.above(lines.lastIndexOf(stages[1] as string));
  });

  it('is given just the files that its build copies', () => {
    const ignored = read('.dockerignore').trim().split('\n');
    expect(ignored[0]).to.equal('*');
    expect(ignored.slice(1).map((line) => line.slice(1))).to.have.members(copied);
  });

  it('is built from what it copies and nothing else', async () => {
    const folder = await mkdtemp(join(tmpdir(), 'medref-image-'));
    try {
      for (const path of copied) {
        expect(existsSync(join(root, path)), path).to.equal(true);
        await cp(join(root, path), join(folder, path), { recursive: true });
      }
      await symlink(join(root, 'node_modules'), join(folder, 'node_modules'));
      await run('npm', ['run', 'build'], { cwd: folder });
      const { stdout } = await run(process.execPath, [join(folder, 'dist/bin/medref.js'), '--help']);
      expect(stdout).to.match(/^Usage: medref/);
      expect(existsSync(join(folder, 'dist/test'))).to.equal(false);
      expect(existsSync(join(folder, 'dist/demo'))).to.equal(false);
    } finally {
      await rm(folder, { recursive: true, force: true });
    }
  });

  it('has every package that the product imports among its dependencies, not among those of development', async () => {
    const { dependencies } = JSON.parse(read('package.json')) as { dependencies: Record<string, string> };
    const { stdout } = await run(
      'grep',
      ['-rhoE', "from '[^.][^']*'", ...copied.filter((it) => !it.includes('.')), '--exclude-dir=demo'],
      { cwd: root },
    );
    const packages = new Set(
      stdout
        .split('\n')
        .map((line) => line.slice("from '".length, -1))
        .filter((name) => name !== '' && !name.startsWith('node:'))
        .map((name) => name.split('/', name.startsWith('@') ? 2 : 1).join('/')),
    );
    expect([...packages].sort()).to.deep.equal(Object.keys(dependencies).sort());
  });
});
