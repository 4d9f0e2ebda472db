// A client that keeps a copy of a collection by changes, by pages or by NDJSON, and verifies it by the digests alone.

import { createHash } from 'node:crypto';
import { type Asked, send, type WireAnswer } from '../support/wire.ts';

/** The JSON texts of a copy's records by id, in the order of arrival. */
interface Copy {
  readonly version: number;
  readonly records: Map<number, string>;
}

/** The outcome of a step of a mirror; `unavailable`: nothing was copied. */
export type MirrorStep =
  | { readonly outcome: 'copied' | 'told-410'; readonly version: number; readonly set: string }
  | { readonly outcome: 'unavailable' };

/** Thrown if a copy is not correct; the message says how. */
export class MirrorFault extends Error {}

/** Returns the id of a collection's record. */
export type IdOf = (record: never) => number;

/** Follows one collection. Every method throws MirrorFault if a copy is not the announced version. */
export class Mirror {
  readonly #asked: Asked;
  readonly #collection: string;
  readonly #idOf: IdOf;
  readonly #way: 'changes' | 'pages' | 'lines';
  #copy: Copy | null = null;

  constructor(asked: Asked, collection: string, idOf: IdOf, way: 'changes' | 'pages' | 'lines') {
    this.#asked = asked;
    this.#collection = collection;
    this.#idOf = idOf;
    this.#way = way;
  }

  /** Updates the copy and verifies it. */
  async step(): Promise<MirrorStep> {
    try {
      if (this.#way === 'lines') return await this.#readLines('copied');
      if (this.#way === 'pages') return await this.#walk();
      return this.#copy ? await this.#follow(this.#copy) : await this.#readLines('copied');
    } catch (error) {
      if (error instanceof Unavailable) return { outcome: 'unavailable' };
      throw error;
    }
  }

  async #readLines(outcome: 'copied' | 'told-410'): Promise<MirrorStep> {
    const response = await this.#get(`/${this.#collection}`, { accept: 'application/x-ndjson' });
    this.#require(response.status === 200, `lines are ${response.status}`);
    const length = response.headers['content-length'];
    this.#require(
      length === undefined || Number(length) === response.body.length,
      'lines have another length',
    );
    const { list, set } = digestsIn(response);
    const found = createHash('sha256').update(response.body).digest('base64');
    this.#require(found === list, 'lines have another digest');
    const texts = response.body.toString().split('\n').slice(0, -1);
    this.#copy = { version: versionIn(response), records: this.#byId(texts) };
    this.#require(set === null || setOf(texts) === set, 'lines have another set digest');
    return { outcome, version: this.#copy.version, set: setOf(texts) };
  }

  async #walk(): Promise<MirrorStep> {
    const head = await this.#get(`/${this.#collection}?per-page=1`);
    this.#require(head.status === 200, `a page is ${head.status}`);
    const version = versionIn(head);
    const texts: string[] = [];
    for (let next: string | undefined = `/${this.#collection}?version=${version}`; next; ) {
      const response = await this.#get(next);
      this.#require(response.status === 200, `a pinned page is ${response.status}`);
      const { data, _links } = JSON.parse(response.body.toString());
      for (const record of data) texts.push(JSON.stringify(record));
      next = _links.next?.href.slice(this.#asked.origin.length);
    }
    const versions = JSON.parse((await this.#get(`/${this.#collection}/versions`)).body.toString());
    const reported = versions.data.find((it: { version: number }) => it.version === version)?.digest;
    const list = createHash('sha256')
      .update(texts.map((text) => `${text}\n`).join(''))
      .digest('base64');
    this.#require(reported?.list === list, 'pages have another digest');
    return { outcome: 'copied', version, set: setOf(texts) };
  }

  async #follow(copy: Copy): Promise<MirrorStep> {
    const records = new Map(copy.records);
    let version = copy.version;
    let reported: string | null = null;
    for (let next: string | undefined = `/${this.#collection}/changes?since=${version}`; next; ) {
      const response = await this.#get(next);
      if (response.status === 410) return this.#readLines('told-410');
      this.#require(response.status === 200, `changes are ${response.status}`);
      const { data, _links } = JSON.parse(response.body.toString());
      for (const { id, change, record } of data) {
        if (change === 'removed')
          this.#require(records.delete(id), `${id} is told to be removed and was not there`);
        else records.set(id, JSON.stringify(record));
      }
      version = versionIn(response);
      reported = digestsIn(response).set;
      next = _links.next?.href.slice(this.#asked.origin.length);
    }
    const set = setOf([...records.values()]);
    this.#require(
      reported === null || reported === set,
      `changes since ${copy.version} lead to another copy of ${version}`,
    );
    this.#copy = { version, records };
    return { outcome: 'copied', version, set };
  }

  async #get(path: string, headers: Record<string, string> = {}): Promise<WireAnswer> {
    const response = await send(this.#asked, path, { headers });
    if (response.status === 503) throw new Unavailable();
    return response;
  }

  #byId(texts: readonly string[]): Map<number, string> {
    return new Map(texts.map((text) => [this.#idOf(JSON.parse(text) as never), text]));
  }

  #require(holds: boolean, what: string): void {
    if (!holds) throw new MirrorFault(`The mirror of ${this.#collection} by ${this.#way}: ${what}.`);
  }
}

class Unavailable extends Error {}

function versionIn({ headers }: WireAnswer): number {
  return Number(headers['medref-version']);
}

function digestsIn({ headers }: WireAnswer): { list: string; set: string | null } {
  const [, list = '', , set = null] =
    /^list=:([^:]+):(, set=:([^:]+):)?$/.exec(String(headers['medref-digest'])) ?? [];
  return { list, set };
}

/** Returns the sum of the SHA-256 of texts, modulo 2^256, in base64. */
export function setOf(texts: readonly string[]): string {
  let sum = 0n;
  for (const text of texts) sum += BigInt(`0x${createHash('sha256').update(text).digest('hex')}`);
  return Buffer.from((sum % 2n ** 256n).toString(16).padStart(64, '0'), 'hex').toString('base64');
}
