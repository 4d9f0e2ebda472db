// Lists in many generations: two of three records name their generation, the third never changes, and some ids come and go.
// Imports of them need MAX_CHANGE_PERCENT at 100.

import type { ServerResponse } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import { type Company, companies as companyCollection } from '../../shared/collections/companies.ts';
import type { Collection } from '../../shared/collections/define.ts';
import { type Product, products as productCollection } from '../../shared/collections/products.ts';
import { companies, products } from '../support/records.ts';
import { startUpstreamServer, type UpstreamServer } from '../support/upstream-server.ts';
import { readList } from '../support/whole-lists.ts';

/** A collection whose lists have generations. */
export interface Subject {
  readonly collection: Collection;
  /** How many records a list has. */
  readonly size: number;
  /** How many records readers request at once. */
  readonly perPage: number;
  /** The id of a record that is in every generation and names it. */
  readonly anId: number;
  /** Returns the JSON texts of a generation's records in order, by id. */
  list(generation: number): ReadonlyMap<number, string>;
  /** Returns the same texts without ids. */
  texts(generation: number): readonly string[];
}

/** Returns a subject with lists of this many products. */
export function productSubject(size: number): Subject {
  const records = products(size + shifts);
  return subject(productCollection, records, ({ product }) => product.id, markedProduct);
}

/** Returns a subject with lists of this many companies. */
export function companySubject(size: number): Subject {
  const mark = (record: Company, officialName: string): Company => ({ ...record, officialName });
  return subject(companyCollection, companies(size + shifts), ({ id }) => id, mark);
}

/** Returns a subject with the complete list of products, the real one if it is there. */
export function wholeSubject(): Subject {
  const records = readList<Product>('products');
  return { ...subject(productCollection, records, ({ product }) => product.id, markedProduct), perPage: 200 };
}

function markedProduct(record: Product, name: string): Product {
  return { ...record, drugform: { ...record.drugform, name } };
}

/** The most records by which the lists of two generations are shifted. */
const shifts = 2;
const maxLists = 5;
const markPlace = 'MARK OF A GENERATION';

function subject<Shape>(
  collection: Collection,
  records: readonly Shape[],
  idOf: (record: Shape) => number,
  marked: (record: Shape, mark: string) => Shape,
): Subject {
  const size = records.length - shifts;
  interface List {
    readonly byId: ReadonlyMap<number, string>;
    readonly texts: readonly string[];
  }
  const lists = new Map<number, List>();
  /** The text of each record before and after its mark, so that a list of thousands is made quickly. */
  const around = records.map((record, index) => {
    const [before = '', after = ''] = JSON.stringify(marked(record, markPlace)).split(markPlace);
    return { id: idOf(record), before, after, isSteady: index % 3 === 0 };
  });
  const entry = (generation: number, index: number): [number, string] => {
    const { id, before, after, isSteady } = around[index] as (typeof around)[number];
    return [id, `${before}${isSteady ? 'STEADY' : `G${generation}`}${after}`];
  };
  const listOf = (generation: number): List => {
    const known = lists.get(generation);
    if (known) return known;
    const first = generation % (shifts + 1);
    const byId = new Map(Array.from({ length: size }, (_, i) => entry(generation, first + i)));
    const list = { byId, texts: [...byId.values()] };
    lists.set(generation, list);
    if (lists.size > maxLists) lists.delete([...lists.keys()][0] as number);
    return list;
  };
  const middle = Math.floor(size / 2);
  return {
    collection,
    size,
    perPage: 7,
    anId: idOf(records[middle + (middle % 3 === 0 ? 1 : 0)] as Shape),
    list: (generation) => listOf(generation).byId,
    texts: (generation) => listOf(generation).texts,
  };
}

/** Returns the generation whose mark comes first in a text. */
export function generationIn(text: string): number | undefined {
  const digits = /"G(\d+)"/.exec(text)?.[1];
  return digits === undefined ? undefined : Number(digits);
}

/** Returns the generations whose marks are in a text. */
export function generationsIn(text: string): number[] {
  return [...new Set([...text.matchAll(/"G(\d+)"/g)].map(([, digits]) => Number(digits)))];
}

/** An upstream that serves one generation at a time, with a validator. */
export interface GenerationUpstream extends UpstreamServer {
  generation: number;
  /** Sends the response in a special way; `null`: the complete list at once. */
  sends: ((response: ServerResponse, text: string) => void) | null;
}

/** Starts an upstream of a subject; the caller calls `close`. */
export async function startGenerations(subject: Subject): Promise<GenerationUpstream> {
  const server = await startUpstreamServer((response, request) => {
    const etag = `"${upstream.generation}"`;
    if (request.headers['if-none-match'] === etag) {
      response.writeHead(304, { etag }).end();
      return;
    }
    const text = `{"data":[${subject.texts(upstream.generation).join(',')}]}`;
    response.writeHead(200, { etag, 'content-type': 'application/json' });
    if (upstream.sends) upstream.sends(response, text);
    else response.end(text);
  });
  const upstream: GenerationUpstream = { ...server, generation: 1, sends: null };
  return upstream;
}

/** A response that waits in the middle of its list. */
export interface HeldUp {
  /** Resolves when the middle has been reached, and the first part has been written. */
  readonly halfway: Promise<void>;
  goOn(): void;
}

/** Makes the next response of an upstream wait in the middle of its list until `goOn`. */
export function holdUp(upstream: GenerationUpstream): HeldUp {
  let goOn = () => {};
  const halfway = new Promise<void>((resolve) => {
    upstream.sends = (response, text) => {
      upstream.sends = null;
      const half = Math.floor((text.length * 2) / 3);
      response.write(text.slice(0, half), () => resolve());
      goOn = () => void response.end(text.slice(half));
    };
  });
  return { halfway: halfway.then(() => sleep(200)), goOn: () => goOn() };
}
