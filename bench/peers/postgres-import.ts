// A list into PostgreSQL with what medref builds: the same rules, products and drugs in list order, and an index per search.
// New tables are filled by COPY and replace the old ones in one transaction. Arguments: the socket's folder, and the file.

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { fold } from '../../shared/store/search-index.ts';
import { validProduct } from './plain-rules.ts';

const [socketFolder = '', file = ''] = process.argv.slice(2);
const rowsAtOnce = 2_000;

const tables = {
  products: 'id bigint, position integer, folded text COLLATE "C", drug bigint, record text',
  drugs: 'id bigint, position integer, folded text COLLATE "C", record text',
  barcodes: 'barcode text, position integer, product bigint',
};
const indexes = [
  'ALTER TABLE new_products ADD PRIMARY KEY (id)',
  'CREATE UNIQUE INDEX ON new_products (position)',
  'CREATE INDEX ON new_products (folded, id)',
  'CREATE INDEX ON new_products (drug, position)',
  'ALTER TABLE new_drugs ADD PRIMARY KEY (id)',
  'CREATE UNIQUE INDEX ON new_drugs (position)',
  'CREATE INDEX ON new_drugs (folded, id)',
  'CREATE INDEX ON new_barcodes (barcode, position)',
];

const [products, drugs, barcodes]: [string[], string[], string[]] = [[], [], []];
const [productIds, drugIds] = [new Set<number>(), new Set<number>()];
for (const value of JSON.parse(readFileSync(file, 'utf8')) as unknown[]) {
  const record = validProduct(value);
  if (!record || productIds.has(record.product.id)) continue;
  const { product, drug } = record;
  productIds.add(product.id);
  const position = productIds.size;
  products.push(row(product.id, position, fold(product.name), drug.id, JSON.stringify(record)));
  for (const { barcode } of record.barcodes) barcodes.push(row(barcode, position, product.id));
  if (drugIds.has(drug.id)) continue;
  drugIds.add(drug.id);
  drugs.push(row(drug.id, drugIds.size, fold(drug.name), JSON.stringify({ drug })));
}

const args = ['-X', '-q', '-h', socketFolder, '-U', 'bench', '-d', 'postgres', '-v', 'ON_ERROR_STOP=1'];
const psql = spawn('psql', args, { stdio: ['pipe', 'inherit', 'inherit'] });
const ended = once(psql, 'close');
for (const [name, columns] of Object.entries(tables))
  psql.stdin.write(`DROP TABLE IF EXISTS new_${name}; CREATE TABLE new_${name} (${columns});\n`);
await copy('products', products);
await copy('drugs', drugs);
await copy('barcodes', barcodes);
psql.stdin.write(`${indexes.join(';\n')};\n`);
const swaps = Object.keys(tables).map(
  (name) => `DROP TABLE IF EXISTS ${name}; ALTER TABLE new_${name} RENAME TO ${name};`,
);
psql.stdin.end(`BEGIN; ${swaps.join(' ')} COMMIT;\n`);
const [code] = await ended;
if (code !== 0) throw new Error(`psql ended with ${code}.`);
process.stdout.write(`${JSON.stringify({ records: productIds.size })}\n`);

async function copy(table: string, rows: readonly string[]): Promise<void> {
  psql.stdin.write(`COPY new_${table} FROM STDIN;\n`);
  for (let from = 0; from < rows.length; from += rowsAtOnce) {
    const text = rows.slice(from, from + rowsAtOnce).join('');
    if (!psql.stdin.write(text)) await once(psql.stdin, 'drain');
  }
  psql.stdin.write('\\.\n');
}

/** Returns a row in the text format of COPY. */
function row(...values: readonly (string | number)[]): string {
  const escaped = values.map((value) => (typeof value === 'number' ? value : escapedText(value)));
  return `${escaped.join('\t')}\n`;
}

function escapedText(text: string): string {
  return text
    .replaceAll('\\', '\\\\')
    .replaceAll('\t', '\\t')
    .replaceAll('\n', '\\n')
    .replaceAll('\r', '\\r');
}
