import { expect } from 'chai';
import { parseAllDocuments } from 'yaml';
import { readSettings } from '../../config/settings.ts';
import { commands, read, settingsReadBy } from '../support/project-files.ts';

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
  volumes?: { name: string }[];
}

interface Container {
  args: string[];
  image: string;
  envFrom: { configMapRef?: { name: string }; secretRef?: { name: string } }[];
  env?: unknown;
  ports?: { name: string; containerPort: number }[];
  securityContext: object;
  lifecycle?: unknown;
  volumeMounts?: { name: string; mountPath: string }[];
  [probe: `${string}Probe`]:
    | { httpGet: { path: string; port: string }; exec?: { command: string[] } }
    | undefined;
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
      expect(() => readSettings(environment as Record<string, string>)).not.to.throw();
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

  it('ask the importer for its heartbeat, which it can write', () => {
    const { livenessProbe, volumeMounts } = containerOf('medref-importer');
    expect(livenessProbe?.exec?.command).to.deep.equal(['node', '/app/dist/bin/health-check.js', 'schedule']);
    expect(volumeMounts?.map(({ mountPath }) => mountPath)).to.deep.equal(['/tmp']);
    expect(podOf('medref-importer').volumes?.map(({ name }) => name)).to.deep.equal(['heartbeat']);
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
