// sync-sqlite.mjs: keeps a copy of products, drugs and companies in medref.db, with versions and digests. Run it once a day.
// It needs Node 20 or newer, and the packages medref-client and sql.js. Settings: MEDREF_URL and MEDREF_KEY.

import { existsSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { createClient, SetDigest } from 'medref-client';
import initSqlJs from 'sql.js';

// `record` is the JSON text of the record: the digest covers it.
const schema = `
CREATE TABLE IF NOT EXISTS products (id INTEGER PRIMARY KEY, name TEXT NOT NULL, drug_id INTEGER NOT NULL,
  drugform TEXT NOT NULL, published INTEGER NOT NULL, record TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS barcodes (product_id INTEGER NOT NULL, barcode TEXT NOT NULL, skrs_status TEXT);
CREATE TABLE IF NOT EXISTS drugs (id INTEGER PRIMARY KEY, name TEXT NOT NULL, record TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS companies (id INTEGER PRIMARY KEY, name TEXT NOT NULL, official_name TEXT NOT NULL,
  website TEXT NOT NULL, fax TEXT, phone TEXT, email TEXT, address TEXT, city TEXT, district TEXT, record TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS copies (collection TEXT PRIMARY KEY, version INTEGER NOT NULL, digest TEXT NOT NULL);
CREATE INDEX IF NOT EXISTS products_by_name ON products (name);
CREATE INDEX IF NOT EXISTS products_by_drug ON products (drug_id);
CREATE INDEX IF NOT EXISTS barcodes_by_barcode ON barcodes (barcode);
CREATE INDEX IF NOT EXISTS barcodes_by_product ON barcodes (product_id)`;

const client = createClient({ baseUrl: process.env.MEDREF_URL, key: process.env.MEDREF_KEY });
const { Database } = await initSqlJs();
// The copy is in memory, and replaces the file at the end: if this program dies, the file stays unchanged.
const database = new Database(existsSync('medref.db') ? readFileSync('medref.db') : undefined);
database.run(schema);

/** The rows of a record, by table, without its JSON text. */
const rowsOf = {
  products: ({ product, drug, drugform, barcodes, published }) => ({
    products: [[product.id, product.name, drug.id, drugform.name, Number(published)]],
    barcodes: barcodes.map(({ barcode, skrsStatus }) => [product.id, barcode, skrsStatus]),
  }),
  drugs: ({ drug }) => ({ drugs: [[drug.id, drug.name]] }),
  companies: ({ id, name, officialName, website, fax, phone, email, address, city, district }) => ({
    companies: [[id, name, officialName, website, fax, phone, email, address, city, district]],
  }),
};

const lines = [];
const copies = [];
database.run('BEGIN');
for (const collection of Object.keys(rowsOf)) {
  const [held] = select('SELECT version FROM copies WHERE collection = ?', [collection]);
  const changes = held && (await applyChanges(collection, held[0]));
  const { version, digest, done } = changes ?? (await readWholeList(collection));
  database.run('INSERT OR REPLACE INTO copies VALUES (?, ?, ?)', [collection, version, digest.set]);
  const [[count]] = select(`SELECT count(*) FROM ${collection}`);
  copies.push({ collection, version, digest: digest.set });
  lines.push(`${collection}: version ${version}: ${done}, ${count} records`);
}
database.run('COMMIT');
writeFileSync('medref.db.new', database.export());
renameSync('medref.db.new', 'medref.db');
console.log(lines.join('\n'));
// The operator then sees which version you have.
for (const { collection, ...copy } of copies) await client[collection].report(copy);

function select(sql, values = []) {
  return database.exec(sql, values)[0]?.values ?? [];
}

function put(collection, record) {
  const {
    [collection]: [row],
    barcodes,
  } = rowsOf[collection](record);
  const marks = [...row, 'record'].map(() => '?').join();
  database.run(`INSERT OR REPLACE INTO ${collection} VALUES (${marks})`, [...row, JSON.stringify(record)]);
  if (!barcodes) return;
  database.run('DELETE FROM barcodes WHERE product_id = ?', [row[0]]);
  for (const its of barcodes) database.run('INSERT INTO barcodes VALUES (?, ?, ?)', its);
}

function remove(collection, id) {
  database.run(`DELETE FROM ${collection} WHERE id = ?`, [id]);
  if (collection === 'products') database.run('DELETE FROM barcodes WHERE product_id = ?', [id]);
}

/** Applies the changes since a version; undefined if they are no longer kept, or do not match the digest. */
async function applyChanges(collection, since) {
  const changes = client[collection].changes({ since });
  let count = 0;
  try {
    for await (const { id, record } of changes) {
      if (record) put(collection, record);
      else remove(collection, id);
      count += 1;
    }
  } catch (error) {
    if (error.status !== 410) throw error;
    return undefined;
  }
  const { version, digest } = changes;
  return isProven(collection, digest) ? { version, digest, done: `${count} changes` } : undefined;
}

async function readWholeList(collection) {
  database.run(`DELETE FROM ${collection}`);
  if (collection === 'products') database.run('DELETE FROM barcodes');
  const list = client[collection].all();
  for await (const record of list) put(collection, record);
  const { version, digest } = list;
  if (!isProven(collection, digest))
    throw new Error(`The copy of ${collection} is not version ${version}: its digest differs.`);
  return { version, digest, done: 'whole list' };
}

/** Returns whether the copy matches a digest; it does not if a record was altered. */
function isProven(collection, digest) {
  const ofCopy = new SetDigest();
  for (const [record] of select(`SELECT record FROM ${collection}`)) ofCopy.add(JSON.parse(record));
  return ofCopy.value === digest.set;
}
