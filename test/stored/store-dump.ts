// Stores lists by this release and writes what Redis then holds: `node --import tsx test/stored/store-dump.ts`. To be run
// before the format of contents is changed, so that the releases to come can be tried on it.

import { companies as companyCollection } from '../../shared/collections/companies.ts';
import { products as productCollection } from '../../shared/collections/products.ts';
import { currentFormat } from '../../shared/formats/content-format.ts';
import { connectForWriting } from '../../shared/redis/connections.ts';
import { importRecords } from '../support/importing.ts';
import { companies } from '../support/records.ts';
import { startTestRedis } from '../support/redis-server.ts';
import { dumpFile, writeDump } from '../support/stored-dump.ts';
import { storedProducts } from './stored-lists.ts';

const server = await startTestRedis();
const redis = await connectForWriting(server.url);
try {
  const force = { redisUrl: server.url, force: true };
  for (const list of storedProducts) await importRecords(list, productCollection, force);
  await importRecords(companies(3), companyCollection, force);
  await writeDump(redis, dumpFile(currentFormat));
} finally {
  redis.disconnect();
  await server.stop();
}
