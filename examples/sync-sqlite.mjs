// sync-sqlite.mjs: keeps a copy of the products in products.db, with its version and digest. Run it once a day.
// It needs Node 22.13 or newer. Settings: MEDREF_URL and MEDREF_KEY.

import { createClient, SetDigest } from 'medref/client';

const { DatabaseSync } = await import('node:sqlite').catch(() => {
  throw new Error(`This needs Node 22.13 or newer, which has SQLite; this is Node ${process.versions.node}.`);
});
const { products } = createClient({ baseUrl: process.env.MEDREF_URL, key: process.env.MEDREF_KEY });
const database = new DatabaseSync('products.db');

// One transaction: if this program dies, the copy stays unchanged.
database.exec(`BEGIN IMMEDIATE;
  CREATE TABLE IF NOT EXISTS product (id INTEGER PRIMARY KEY, record TEXT NOT NULL CHECK (json_valid(record)));
  CREATE TABLE IF NOT EXISTS copy (version INTEGER NOT NULL, digest TEXT)`);
const put = database.prepare('INSERT OR REPLACE INTO product VALUES (?, ?)');
const remove = database.prepare('DELETE FROM product WHERE id = ?');

const held = database.prepare('SELECT version FROM copy').get();
const changes = held && (await applyChanges(held.version));
const { version, digest, done } = changes ?? (await readWholeList());
database.exec('DELETE FROM copy');
database.prepare('INSERT INTO copy VALUES (?, ?)').run(version, digest.set);
database.exec('COMMIT');
const { count } = database.prepare('SELECT count(*) AS count FROM product').get();
console.log(`version ${version}: ${done}, ${count} records`);

/** Applies the changes since a version; undefined if they are no longer kept, or do not match the digest. */
async function applyChanges(since) {
  const changes = products.changes({ since });
  let count = 0;
  try {
    for await (const { id, record } of changes) {
      if (record) put.run(id, JSON.stringify(record));
      else remove.run(id);
      count += 1;
    }
  } catch (error) {
    if (error.status !== 410) throw error;
    return undefined;
  }
  const { version, digest } = changes;
  return isProven(digest) ? { version, digest, done: `${count} changes` } : undefined;
}

async function readWholeList() {
  database.exec('DELETE FROM product');
  const list = products.all();
  for await (const record of list) put.run(record.product.id, JSON.stringify(record));
  const { version, digest } = list;
  if (!isProven(digest)) throw new Error(`The copy is not version ${version}: its digest differs.`);
  return { version, digest, done: 'whole list' };
}

/** Returns whether the copy matches a digest; it does not if a record was altered. */
function isProven(digest) {
  const ofCopy = new SetDigest();
  for (const { record } of database.prepare('SELECT record FROM product').iterate())
    ofCopy.add(JSON.parse(record));
  return ofCopy.value === digest.set;
}
