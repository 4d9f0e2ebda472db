import { promises } from './promises.ts';
import { startSentinels } from './servers.ts';

promises('a master with two replicas and three Sentinels', startSentinels);
