import { execFile } from 'node:child_process';
import { mkdtemp, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { expect } from 'chai';
import { parse, parseAllDocuments } from 'yaml';
import { drainMs } from '../../api/service.ts';
import { workerStopMs } from '../../api/workers.ts';
import { onPath } from '../../bench/installed.ts';
import { readSettings } from '../../config/settings.ts';
import { commands, read, root, settingsReadBy } from '../support/project-files.ts';

const run = promisify(execFile);

interface Manifest {
  apiVersion: string;
  kind: string;
  metadata: { name: string; namespace?: string; labels?: Record<string, string> };
  data?: Record<string, string>;
  spec?: {
    replicas?: number;
    strategy?: object;
    selector?: Record<string, unknown> & { matchLabels?: Record<string, string> };
    ports?: { name: string; targetPort: string }[];
    template?: { metadata: { labels: Record<string, string> }; spec: PodSpec };
    clusterIP?: string;
    maxUnavailable?: number;
    unhealthyPodEvictionPolicy?: string;
    podSelector?: { matchLabels: Record<string, string> };
    ingress?: { ports: { port: string }[]; from?: object[] }[];
    egress?: { ports: { port: number }[] }[];
    jobLabel?: string;
    endpoints?: { port: string; path: string }[];
  };
}

interface PodSpec {
  automountServiceAccountToken: boolean;
  enableServiceLinks: boolean;
  terminationGracePeriodSeconds: number;
  topologySpreadConstraints?: { topologyKey: string; labelSelector: object; whenUnsatisfiable: string }[];
  securityContext: object;
  containers: [Container];
  volumes?: { name: string }[];
}

interface Container {
  args: string[];
  image: string;
  envFrom: { configMapRef?: { name: string }; secretRef?: { name: string } }[];
  env?: unknown;
  ports?: { name: string; containerPort: number }[];
  resources: { limits: Record<string, string>; requests: Record<string, string> };
  securityContext: object;
  lifecycle?: { preStop: { exec: { command: string[] } } };
  volumeMounts?: { name: string; mountPath: string }[];
  [probe: `${string}Probe`]:
    | { httpGet: { path: string; port: string }; exec?: { command: string[] } }
    | undefined;
}

const kubectl = onPath('kubectl');
const missing = kubectl ? '' : ' (left out: kubectl is not installed)';

(kubectl ? describe : describe.skip)(`the Kubernetes manifests, as kustomize renders them${missing}`, () => {
  let manifests: readonly Manifest[] = [];
  before(async () => {
    manifests = await rendered('example');
  });

  /** Returns the manifests that kustomize renders from a folder. */
  async function rendered(folder: string): Promise<Manifest[]> {
    const { stdout, stderr } = await run(kubectl as string, [
      ...['kustomize', join(root, 'deploy/kubernetes', folder)],
    ]);
    expect(stderr, 'complaints of kustomize').to.equal('');
    const documents = parseAllDocuments(stdout);
    for (const document of documents) expect([...document.errors, ...document.warnings]).to.deep.equal([]);
    return documents.map((it) => it.toJS() as Manifest);
  }

  /** Returns a manifest by its kind and name, without the digest that kustomize appends to names of settings. */
  function found(kind: string, name: string): Manifest {
    const named = new RegExp(`^${name}(-[a-z0-9]{10})?$`);
    const its = manifests.filter((it) => it.kind === kind && named.test(it.metadata.name));
    expect(its, `${kind} ${name}`).to.have.length(1);
    return its[0] as Manifest;
  }
  const processes = [
    { name: 'medref-api', command: 'serve' },
    { name: 'medref-importer', command: 'schedule' },
  ] as const;
  const podOf = (name: string) => found('Deployment', name).spec?.template?.spec as PodSpec;
  const containerOf = (name: string) => podOf(name).containers[0];
  const labelsOf = (name: string) => found('Deployment', name).spec?.template?.metadata.labels;

  /** Returns the environment of a container. */
  function environmentOf(name: string): Record<string, string> {
    const { env, envFrom } = containerOf(name);
    expect(env).to.equal(undefined);
    const ofSecret = ({ data = {} }: Manifest) =>
      Object.entries(data).map(([key, value]) => [key, Buffer.from(value, 'base64').toString()]);
    return Object.assign(
      {},
      ...envFrom.map(({ configMapRef, secretRef }) =>
        configMapRef
          ? found('ConfigMap', configMapRef.name).data
          : Object.fromEntries(ofSecret(found('Secret', secretRef?.name as string))),
      ),
    );
  }

  it('match the schemas of Kubernetes', async function () {
    this.timeout(60_000);
    // ServiceMonitor is no part of Kubernetes. Its schema comes from the Prometheus operator, and a test below checks it.
    const ofKubernetes = manifests.filter(({ kind }) => kind !== 'ServiceMonitor');
    expect(ofKubernetes.length).to.be.above(9);
    expect(await complaintsOfTheSchemas(ofKubernetes)).to.deep.equal([]);
  });

  it('are in one namespace of their own, with unique names', () => {
    const names = manifests.map(({ kind, metadata }) => `${kind} ${metadata.name}`);
    expect(new Set(names).size).to.equal(names.length);
    for (const { kind, metadata } of manifests) {
      if (kind !== 'Namespace') expect(metadata.namespace, kind).to.equal('medref');
      else expect(metadata.labels).to.include({ 'pod-security.kubernetes.io/enforce': 'restricted' });
    }
  });

  it('run commands that exist: several API processes, one importer at a time', () => {
    const { version } = JSON.parse(read('package.json')) as { version: string };
    for (const { name, command } of processes) {
      expect(containerOf(name).args).to.deep.equal([command]);
      expect(commands).to.include(command);
      expect(containerOf(name).image).to.equal(`registry.example/medref:${version}`);
    }
    expect(found('Deployment', 'medref-api').spec?.replicas).to.be.above(1);
    expect(found('Deployment', 'medref-importer').spec).to.deep.include({
      ...{ replicas: 1, strategy: { type: 'Recreate' } },
    });
  });

  it('set only settings that the process reads, to accepted values', () => {
    for (const { name, command } of processes) {
      const environment = environmentOf(name);
      expect(settingsReadBy(command), name).to.include.members(Object.keys(environment));
      expect(() => readSettings(environment)).not.to.throw();
      expect(environment, name).to.include.keys('REDIS_URL');
      expect(podOf(name).enableServiceLinks, `${name}: variables of Services`).to.equal(false);
    }
    expect(environmentOf('medref-api')).to.include({ READ_FROM: 'replica' }).and.include.keys('BASE_URL');
    expect(environmentOf('medref-importer')).to.include.keys('PRODUCTS_URL', 'COMPANIES_URL');
  });

  it("run manual commands with the importer's settings as Redis user operator", () => {
    const environment = environmentOf('medref-operator');
    const { username } = new URL(
      environment['REDIS_URL']?.replace('redis+sentinel:', 'http:').replace(/,[^/]+/, '') ?? '',
    );
    expect(username).to.equal('operator');
    expect({ ...environment, REDIS_URL: '' }).to.deep.equal({
      ...environmentOf('medref-importer'),
      REDIS_URL: '',
    });
    expect(() => readSettings(environment)).not.to.throw();
  });

  it('probe /health/live for liveness and /health/ready for readiness', () => {
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

  it("probe the importer's heartbeat, which it can write", () => {
    const { livenessProbe, volumeMounts } = containerOf('medref-importer');
    const compose = parse(read('docker-compose.yml'), { merge: true });
    const [, script] = compose.services.importer.healthcheck.test;
    expect(livenessProbe?.exec?.command, 'as tested with the compose file').to.deep.equal([
      'sh',
      '-c',
      script,
    ]);
    expect(volumeMounts?.map(({ mountPath }) => mountPath)).to.deep.equal(['/tmp']);
    expect(podOf('medref-importer').volumes?.map(({ name }) => name)).to.deep.equal(['heartbeat']);
  });

  it('start a new process before an old one stops, and let that one finish its responses', () => {
    expect(found('Deployment', 'medref-api').spec?.strategy).to.deep.equal({
      ...{ type: 'RollingUpdate', rollingUpdate: { maxSurge: 1, maxUnavailable: 0 } },
    });
    const [sleep, before] = containerOf('medref-api').lifecycle?.preStop.exec.command ?? [];
    expect(sleep).to.equal('sleep');
    // With several workers, a worker that has not ended by then is killed.
    const seconds = Math.max(drainMs, workerStopMs) / 1_000;
    expect(podOf('medref-api').terminationGracePeriodSeconds).to.be.above(Number(before) + seconds);
    const [, unit] = /^TimeoutStopSec=(\d+)$/m.exec(read('deploy/systemd/medref-importer.service')) ?? [];
    expect(podOf('medref-importer').terminationGracePeriodSeconds).to.be.at.least(Number(unit));
  });

  it('let Prometheus scrape each process under the job of the alerts', () => {
    const service = found('Service', 'medref-api-metrics');
    expect(service.spec?.selector).to.deep.equal(labelsOf('medref-api'));
    expect(service.spec).to.include({ clusterIP: 'None', publishNotReadyAddresses: true });
    expect(service.spec?.ports?.map(({ targetPort }) => targetPort)).to.deep.equal(['metrics']);
    const { apiVersion, spec } = found('ServiceMonitor', 'medref');
    expect(apiVersion).to.equal('monitoring.coreos.com/v1');
    expect(spec?.selector?.matchLabels).to.deep.equal(service.metadata.labels);
    expect(spec?.endpoints?.map(({ port, path }) => [port, path])).to.deep.equal([
      [service.spec?.ports?.[0]?.name, '/metrics'],
    ]);
    const job = service.metadata.labels?.[spec?.jobLabel as string];
    expect(read('deploy/prometheus/alerts.yml')).to.include(`up{job="${job}"}`);
  });

  it('run without root, token and capabilities, on a read-only file system', () => {
    for (const name of ['medref-api', 'medref-importer', 'medref-operator']) {
      expect(podOf(name).automountServiceAccountToken, name).to.equal(false);
      expect(podOf(name).securityContext).to.deep.equal({
        ...{ runAsNonRoot: true, runAsUser: 1000, runAsGroup: 1000 },
        seccompProfile: { type: 'RuntimeDefault' },
      });
      expect(containerOf(name).securityContext).to.deep.equal({
        allowPrivilegeEscalation: false,
        readOnlyRootFilesystem: true,
        capabilities: { drop: ['ALL'] },
      });
      const { limits, requests } = containerOf(name).resources;
      expect(Object.keys(limits), 'no limit of CPU, which would slow responses down').to.deep.equal([
        'memory',
      ]);
      expect(requests).to.have.all.keys('cpu', 'memory');
    }
  });
});

/**
 * Returns the faults of manifests by the schemas of Kubernetes: unknown members, missing members, and values of another
 * type. kubernetes-types provides the schemas as types of TypeScript. They do not check the content of texts.
 */
async function complaintsOfTheSchemas(manifests: readonly Manifest[]): Promise<string[]> {
  const folder = await mkdtemp(join(tmpdir(), 'medref-manifests-'));
  try {
    await symlink(join(root, 'node_modules'), join(folder, 'node_modules'));
    await Promise.all(manifests.map((it, n) => writeFile(join(folder, `${n}.ts`), asTypeScript(it))));
    const options = { strict: true, noEmit: true, skipLibCheck: true, types: [], lib: ['es2023'] };
    const compilerOptions = { ...options, module: 'preserve', moduleResolution: 'bundler' };
    await writeFile(join(folder, 'tsconfig.json'), JSON.stringify({ compilerOptions }));
    const { stdout } = await run(join(root, 'node_modules/.bin/tsc'), ['--pretty', 'false'], {
      cwd: folder,
    }).catch((failure: { stdout: string }) => failure);
    // Indented lines continue the line before.
    const complaints = [...stdout.matchAll(/^(\d+)\.ts.*?: (.*)$/gm)];
    expect(complaints.length > 0, stdout).to.equal(stdout !== '');
    return complaints.map(([, n, complaint]) => {
      const { kind, metadata } = manifests[Number(n)] as Manifest;
      return `${kind} ${metadata.name}: ${complaint}`;
    });
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

/** Returns a manifest as a value of the type that its kind has. */
function asTypeScript(manifest: Manifest): string {
  const { apiVersion, kind } = manifest;
  const module = apiVersion === 'v1' ? 'core/v1' : apiVersion.replace('.k8s.io', '');
  return `import type { ${kind} } from 'kubernetes-types/${module}';
export const manifest: ${kind} = ${JSON.stringify(manifest, undefined, 2)};`;
}
