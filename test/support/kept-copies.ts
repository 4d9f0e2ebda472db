// Runs the programs of examples/ and docs/CONSUMERS.md that keep a copy of the products, and reads their copies.

import { execFileSync } from 'node:child_process';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import pg from 'pg';
import { onPath } from '../../bench/installed.ts';
import { postgresPrograms, startPostgres } from '../../bench/postgres.ts';
import { Workspace } from '../../bench/workspace.ts';
import { digestOf } from '../../client/client.ts';
import type { Product } from '../../shared/collections/products.ts';

const inExamples = (file: string) => fileURLToPath(new URL(`../../examples/${file}`, import.meta.url));

interface Lock {
  readonly records: Product[];
  readonly digest: string;
}

/** The copy that a program keeps. */
export interface KeptCopy {
  /** Reads the records, and the set digest that the program keeps with them. */
  read(): Lock | Promise<Lock>;
  /** Changes the record with an id without the program. */
  tamper(id: number): unknown;
  /** Returns whether a write of the program is in progress. */
  isUnderWay(): boolean | Promise<boolean>;
}

export interface CopyingProgram {
  readonly name: string;
  readonly command: string;
  readonly args: readonly string[];
  /** The program that it needs and this machine lacks. */
  readonly missing: string | undefined;
  readonly settings?: () => Record<string, string>;
  readonly copyIn: (folder: string) => KeptCopy;
}

const python = onPath('python3') ?? 'python3';
const noPython = onPath('python3') ? undefined : 'Python 3';

/**
 * Reads a copy in SQLite, through Python, because not every supported Node has SQLite.
 * @param isInMemory whether the program writes the file at its end
 */
function inSqlite(folder: string, { isInMemory = false } = {}): KeptCopy {
  const ask = (sql: string) => {
    const program = `import json, sqlite3
with sqlite3.connect('medref.db') as database:
    print(json.dumps(database.execute(${JSON.stringify(sql)}).fetchall()))`;
    return JSON.parse(execFileSync(python, ['-c', program], { cwd: folder, encoding: 'utf8' }));
  };
  return {
    read: () => {
      const rows: string[][] = ask(
        "SELECT record FROM products UNION ALL SELECT digest FROM copies WHERE collection = 'products'",
      );
      const [digest = '', ...records] = rows.flat().reverse();
      return { records: records.map((record) => JSON.parse(record)), digest };
    },
    tamper: (id) => ask(`UPDATE products SET record = json_set(record, '$.drug.name', 'X') WHERE id = ${id}`),
    isUnderWay: () => isInMemory || existsSync(join(folder, 'medref.db-journal')),
  };
}

function inFile(folder: string): KeptCopy {
  const file = join(folder, 'products.json');
  return {
    read: () => {
      const kept = JSON.parse(readFileSync(file, 'utf8')).records as [number, Product][];
      const records = kept.map(([, record]) => record);
      return { records, digest: digestOf(records).set };
    },
    tamper: (id) =>
      writeFileSync(file, readFileSync(file, 'utf8').replace(`[${id},{`, `[${id},{"it":"was changed",`)),
    isUnderWay: () => true,
  };
}

const postgres = postgresPrograms();

/** Starts a PostgreSQL for a mocha suite, if one is installed. @returns its connection settings, and the copy of a program */
function usePostgres(): { settings(): Record<string, string>; copy: KeptCopy } {
  let workspace: Workspace | undefined;
  let database: pg.Client;
  let settings: Record<string, string>;
  before(async () => {
    if (postgres === undefined) return;
    workspace = await Workspace.open();
    const { socketFolder } = await startPostgres(workspace, postgres);
    settings = { PGHOST: socketFolder, PGUSER: 'bench', PGDATABASE: 'postgres' };
    database = new pg.Client({ host: socketFolder, user: 'bench', database: 'postgres' });
    await database.connect();
  });
  after(async () => {
    await database?.end();
    await workspace?.close();
  });
  const ask = async (sql: string, values: unknown[] = []) => (await database.query(sql, values)).rows;
  const writing = "relation = 'product'::regclass AND mode = 'RowExclusiveLock'";
  return {
    settings: () => settings,
    copy: {
      read: async () => ({
        records: (await ask('SELECT record FROM product')).map(({ record }) => record),
        digest: (await ask('SELECT digest FROM copy'))[0].digest,
      }),
      tamper: (id) => ask('UPDATE product SET record = $1 WHERE id = $2', ['{"it":"was changed"}', id]),
      isUnderWay: async () => (await ask(`SELECT 1 FROM pg_locks WHERE ${writing}`)).length > 0,
    },
  };
}

/** Declares the copying programs, with the PostgreSQL that one of them needs, for a mocha suite. */
export function useCopyingPrograms(): CopyingProgram[] {
  const { settings, copy } = usePostgres();
  return [
    {
      ...{ name: 'sync-sqlite.mjs', command: process.execPath, args: ['sync-sqlite.mjs'], missing: noPython },
      copyIn: (folder) => inSqlite(folder, { isInMemory: true }),
    },
    {
      ...{ name: 'sync_sqlite.py', command: python, args: [inExamples('sync_sqlite.py')] },
      ...{ missing: noPython, copyIn: inSqlite },
    },
    {
      ...{ name: 'sync-postgres.mjs', command: process.execPath, args: ['sync-postgres.mjs'] },
      ...{ missing: postgres ? undefined : 'PostgreSQL', settings, copyIn: () => copy },
    },
    {
      ...{ name: 'sync.mjs', command: process.execPath, args: ['sync.mjs'] },
      ...{ missing: undefined, copyIn: inFile },
    },
  ];
}
