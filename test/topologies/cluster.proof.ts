import { promises } from './promises.ts';
import { startCluster } from './servers.ts';

promises('a Cluster of three masters and three replicas', () => startCluster({ masters: 3, replicas: 1 }));
