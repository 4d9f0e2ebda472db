// sync-postgres.mjs: keeps a copy of the products in the table product, with its version and digest. Run it once a day.
// It needs pg. Settings: MEDREF_URL, MEDREF_KEY, and PGHOST and the others of libpq.

import { createClient, SetDigest } from 'medref-client';
import pg from 'pg';

const { products } = createClient({ baseUrl: process.env.MEDREF_URL, key: process.env.MEDREF_KEY });
const database = new pg.Client();
await database.connect();

// The type json keeps the text of a record; jsonb would change it, and the digest.
await database.query(`CREATE TABLE IF NOT EXISTS product (id bigint PRIMARY KEY, record json NOT NULL);
  CREATE TABLE IF NOT EXISTS copy (version bigint NOT NULL, digest text)`);
// One transaction: if this program dies, the copy stays unchanged. Others may read meanwhile.
await database.query('BEGIN; LOCK TABLE copy IN EXCLUSIVE MODE');
const held = (await database.query('SELECT version FROM copy')).rows[0];
const changes = held && (await applyChanges(Number(held.version)));
const { version, digest, done } = changes ?? (await readWholeList());
await database.query('DELETE FROM copy');
await database.query('INSERT INTO copy VALUES ($1, $2)', [version, digest.set]);
await database.query('COMMIT');
const { rows } = await database.query('SELECT count(*) FROM product');
console.log(`version ${version}: ${done}, ${rows[0].count} records`);
await products.report({ version, digest: digest.set }); // The operator then sees which version you have.
await database.end();

/** Applies the changes since a version; undefined if they are no longer kept, or do not match the digest. */
async function applyChanges(since) {
  const changes = products.changes({ since });
  let count = 0;
  try {
    for await (const some of batches(changes)) {
      const removed = some.filter(({ change }) => change === 'removed').map(({ id }) => id);
      await database.query('DELETE FROM product WHERE id = ANY($1)', [removed]);
      await put(some.flatMap(({ record }) => record ?? []));
      count += some.length;
    }
  } catch (error) {
    if (error.status !== 410) throw error;
    return undefined;
  }
  const { version, digest } = changes;
  return (await isProven(digest)) ? { version, digest, done: `${count} changes` } : undefined;
}

async function readWholeList() {
  await database.query('DELETE FROM product');
  const list = products.all();
  for await (const some of batches(list)) await put(some);
  const { version, digest } = list;
  if (!(await isProven(digest))) throw new Error(`The copy is not version ${version}: its digest differs.`);
  return { version, digest, done: 'whole list' };
}

async function put(records) {
  await database.query(
    `INSERT INTO product SELECT id, record FROM unnest($1::bigint[], $2::json[]) AS it (id, record)
     ON CONFLICT (id) DO UPDATE SET record = excluded.record`,
    [records.map(({ product }) => product.id), records.map((record) => JSON.stringify(record))],
  );
}

/** Returns whether the copy matches a digest; it does not if a record was altered. */
async function isProven(digest) {
  const ofCopy = new SetDigest();
  const { rows } = await database.query('SELECT record FROM product');
  for (const { record } of rows) ofCopy.add(record);
  return ofCopy.value === digest.set;
}

/** Up to 1,000 items at a time. */
async function* batches(items) {
  let some = [];
  for await (const item of items) {
    some.push(item);
    if (some.length < 1_000) continue;
    yield some;
    some = [];
  }
  yield some;
}
