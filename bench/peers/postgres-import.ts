// In: a PostgreSQL and a file of records, one a line. Out: they are imported as its users would: COPY, the same rules in SQL,
// the same things to find them by, and a swap of tables in a transaction, so that readers see one list or the other.

import pg from 'pg';

/** Imports, and gives how many records were valid; the tables of the import before leave. */
export async function importIntoPostgres(socketFolder: string, file: string): Promise<number> {
  const client = new pg.Client({ host: socketFolder, database: 'postgres', user: 'bench' });
  await client.connect();
  try {
    for (const step of steps(file)) await client.query(step);
    const { rows } = await client.query<{ count: string }>('SELECT count(*) FROM products');
    return Number(rows[0]?.count);
  } finally {
    await client.end();
  }
}

/** What no JSON text has stands for quotes and delimiters: so each line is one value. */
function steps(file: string): string[] {
  return [
    functions,
    // What is only staged need not outlive a crash.
    'CREATE UNLOGGED TABLE incoming (position bigint GENERATED ALWAYS AS IDENTITY, value jsonb NOT NULL)',
    `COPY incoming (value) FROM '${file}' WITH (FORMAT csv, QUOTE E'\\x01', DELIMITER E'\\x02')`,
    'CREATE TABLE rejects_next AS SELECT position, value FROM incoming WHERE is_product(value) IS NOT TRUE',
    `CREATE TABLE products_next AS
       SELECT DISTINCT ON (id) position, id, folded, barcodes, drug_id, drug_name, record
       FROM (SELECT position, (value->'product'->>'id')::bigint AS id, lower(value->'product'->>'name') AS folded,
                    ARRAY(SELECT it->>'barcode' FROM jsonb_array_elements(value->'barcodes') AS it) AS barcodes,
                    (value->'drug'->>'id')::bigint AS drug_id, value->'drug'->>'name' AS drug_name,
                    json_build_object('product', ${named('product')}, 'drug', ${named('drug')},
                      'drugform', ${named('drugform')},
                      'barcodes', ARRAY(SELECT json_build_object('barcode', it->'barcode', 'skrsStatus', it->'skrsStatus')
                                        FROM jsonb_array_elements(value->'barcodes') AS it),
                      'published', value->'published') AS record
             FROM incoming WHERE is_product(value)) AS valid
       ORDER BY id, position`,
    'ALTER TABLE products_next ADD UNIQUE (id), ADD PRIMARY KEY (position)',
    'CREATE INDEX ON products_next (folded text_pattern_ops)',
    'CREATE INDEX ON products_next USING gin (barcodes)',
    'CREATE INDEX ON products_next (drug_id, position)',
    `CREATE TABLE drugs_next AS
       SELECT DISTINCT ON (drug_id) drug_id AS id, drug_name AS name, lower(drug_name) AS folded
       FROM products_next ORDER BY drug_id, position`,
    'ALTER TABLE drugs_next ADD PRIMARY KEY (id)',
    'CREATE INDEX ON drugs_next (folded text_pattern_ops)',
    'DROP TABLE incoming',
    'ANALYZE products_next, drugs_next',
    `BEGIN;
     DROP TABLE IF EXISTS products, drugs, rejects;
     ALTER TABLE products_next RENAME TO products;
     ALTER TABLE drugs_next RENAME TO drugs;
     ALTER TABLE rejects_next RENAME TO rejects;
     COMMIT`,
  ];
}

/** Members that are not known are left out, as medref does. */
function named(member: string): string {
  return `json_build_object('id', value->'${member}'->'id', 'name', value->'${member}'->'name')`;
}

const functions = `
CREATE OR REPLACE FUNCTION is_named(it jsonb) RETURNS boolean LANGUAGE sql IMMUTABLE AS $$
  SELECT CASE WHEN jsonb_typeof(it->'id') = 'number' AND jsonb_typeof(it->'name') = 'string'
    THEN (it->'id')::numeric BETWEEN 1 AND 9007199254740991 AND (it->'id')::numeric % 1 = 0
         AND it->>'name' ~ '[^[:space:][:cntrl:]\\u00A0\\u2000-\\u200F\\u2028-\\u202F\\u205F-\\u206F\\u3000\\uFEFF]' AND char_length(it->>'name') <= 10000
    ELSE false END $$;
CREATE OR REPLACE FUNCTION is_barcode(it jsonb) RETURNS boolean LANGUAGE sql IMMUTABLE AS $$
  SELECT jsonb_typeof(it->'barcode') IN ('string', 'number') AND it->>'barcode' ~ '^[0-9]{12,13}$'
         AND jsonb_typeof(it->'skrsStatus') IN ('string', 'null') $$;
CREATE OR REPLACE FUNCTION is_product(it jsonb) RETURNS boolean LANGUAGE sql IMMUTABLE AS $$
  SELECT is_named(it->'product') AND is_named(it->'drug') AND is_named(it->'drugform')
    AND jsonb_typeof(it->'published') = 'boolean'
    AND CASE WHEN jsonb_typeof(it->'barcodes') = 'array'
      THEN jsonb_array_length(it->'barcodes') <= 1000
           AND NOT EXISTS (SELECT FROM jsonb_array_elements(it->'barcodes') AS entry WHERE is_barcode(entry) IS NOT TRUE)
      ELSE false END $$`;
