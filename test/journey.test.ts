import { journey } from './support/journey.ts';
import { startTestRedis } from './support/redis-server.ts';

journey(() => startTestRedis({ appendOnly: true }));
