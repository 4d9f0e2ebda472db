// sync-sqlite.mjs: makes products.db the same as the products of the service. Run it once a day, with Node 22.13 or newer.
// In: MEDREF_URL and MEDREF_KEY. Out: the table product, and the version and digest of all that is in it.

import { createClient, SetDigest } from 'medref/client';

const { DatabaseSync } = await import('node:sqlite').catch(() => {
  throw new Error(`This needs Node 22.13 or newer, which has SQLite; this is Node ${process.versions.node}.`);
});
const { products } = createClient({ baseUrl: process.env.MEDREF_URL, key: process.env.MEDREF_KEY });
const database = new DatabaseSync('products.db');

// All of it is one transaction: where this program dies, the copy stays as it was.
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

/** What changed since a version; nothing where that is not known any more, or does not lead to what the service has. */
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

/** Whether the copy is what a digest is of, also where somebody has changed it. */
function isProven(digest) {
  const ofCopy = new SetDigest();
  for (const { record } of database.prepare('SELECT record FROM product').iterate())
    ofCopy.add(JSON.parse(record));
  return ofCopy.value === digest.set;
}
