// Finds the records in the text of one document: an array, an envelope with a `data` array, or JSON Lines.

import { quoted } from '../upstream/error.ts';
import { type ExactValue, type Flaw, isWhiteSpace, readExactly, ValueScanner } from './values.ts';

/** One element of the upstream's list, as it came. */
export interface SourceRecord {
  /** Place in the list, from 1, counted over all pages. */
  readonly position: number;
  /** The parsed value, which need not be an object. A number that could only be kept rounded is NaN. */
  readonly value: unknown;
  /** A reason to reject the record that its JSON text shows and its value does not, or null. */
  readonly flaw: Flaw | null;
  /** Returns the JSON text of the record as it came. */
  raw(): string;
}

/** What the envelope of a document says; `undefined` if it says nothing. */
export interface Envelope {
  /** `_links.next.href`, or null if there is no next page. */
  readonly next: string | null;
  /** `_meta.totalCount`, of whatever type. */
  readonly totalCount: unknown;
}

/** Reads one document piece by piece. */
export interface RecordParser {
  /** Accepts the next piece of text and returns the records that it completes. @throws UnreadableJson */
  feed(text: string): SourceRecord[];
  /** Accepts the end of the text and returns the records that it completes. @throws UnreadableJson */
  end(): SourceRecord[];
  /** Known after {@link end}. */
  readonly envelope: Envelope;
}

export interface ParserOptions {
  /** Whether the document is JSON Lines, which its text does not tell for certain. */
  readonly lines: boolean;
  /** How many records the pages before held. */
  readonly recordsBefore: number;
  /** How deep a record may be nested. */
  readonly maxDepth: number;
}

/** The document is not a list of records; the message continues a sentence that begins with the document's name. */
export class UnreadableJson extends Error {}

/** Makes the parser of one document. */
export function createRecordParser(options: ParserOptions): RecordParser {
  return options.lines ? new LinesParser(options) : new DocumentParser(options);
}

/** Collects the text of one value after the other and reads it. */
class ValueReader {
  private readonly scanner = new ValueScanner();
  private readonly maxDepth: number;
  /** The text of the open value; joined at its end, because a text that grows by characters is copied each time. */
  private parts: string[] = [];
  text = '';

  constructor(maxDepth: number) {
    this.maxDepth = maxDepth;
  }

  get isOpen(): boolean {
    return this.scanner.isOpen;
  }

  /** Scans on. @returns the index after the value, whose text is then in `text`; -1 if it goes on in the next piece */
  scan(text: string, from: number): number {
    const end = this.scanner.scan(text, from);
    if (end === -1) {
      this.parts.push(text.slice(from));
      return -1;
    }
    const last = text.slice(from, end);
    this.text = this.parts.length === 0 ? last : this.parts.join('') + last;
    this.parts = [];
    return end;
  }

  /** Reads the last value. @throws SyntaxError */
  read(): ExactValue {
    return readExactly(this.text, this.scanner, this.maxDepth);
  }

  /** Reads the last value as a record. @throws SyntaxError */
  record(position: number): SourceRecord {
    const { value, flaw } = this.read();
    const { text } = this;
    // A copy: the text itself keeps the whole piece in memory that it is part of.
    return { position, value, flaw, raw: () => Buffer.from(text).toString() };
  }
}

/** What may come next in a document; the value of a member and a record end in the `after` places. */
type Place = 'start' | 'end' | `${'first' | 'next' | 'after'} ${'record' | 'member'}` | 'colon' | 'value';

/** An array of records, or an envelope with such an array as its `data`. */
class DocumentParser implements RecordParser {
  private readonly reader: ValueReader;
  private place: Place = 'start';
  private inEnvelope = false;
  private member = '';
  /** `data`, `_links` and `_meta`, as far as they came. */
  private readonly members = new Map<string, unknown>();
  private position: number;

  constructor({ recordsBefore, maxDepth }: ParserOptions) {
    this.reader = new ValueReader(maxDepth);
    this.position = recordsBefore;
  }

  feed(text: string): SourceRecord[] {
    const records: SourceRecord[] = [];
    for (let at = 0; at < text.length; ) {
      if (this.reader.isOpen || (!isWhiteSpace(text.charCodeAt(at)) && this.startsValue(text, at))) {
        at = this.reader.scan(text, at);
        if (at === -1) break;
        this.takeValue(records);
      } else {
        at++;
      }
    }
    return records;
  }

  end(): SourceRecord[] {
    if (this.place === 'start') throw new UnreadableJson('is empty, where a list of records is expected.');
    if (this.place !== 'end') {
      throw new UnreadableJson(`is cut off: its JSON ends too early, after ${this.recordsSoFar()}.`);
    }
    return [];
  }

  get envelope(): Envelope {
    return {
      next: nextHref(this.members.get('_links')),
      totalCount: member(this.members.get('_meta'), 'totalCount'),
    };
  }

  /** Accepts a character between values, or returns true if a value begins with it. */
  private startsValue(text: string, at: number): boolean {
    const character = text[at] as string;
    switch (this.place) {
      case 'start':
        this.begin(text.slice(at));
        return false;
      case 'first record':
        if (character === ']') return this.endRecords();
        return true;
      case 'after record':
        if (character === ']') return this.endRecords();
        return this.expect(character === ',', 'next record');
      case 'next record':
        // The scanner would take a bracket that closes for the end of an empty value.
        if (character === ']') throw this.syntaxError();
        return true;
      case 'first member':
        if (character === '}') return this.endEnvelope();
        if (character !== '"') throw this.syntaxError();
        return true;
      case 'after member':
        if (character === '}') return this.endEnvelope();
        return this.expect(character === ',', 'next member');
      case 'next member':
        if (character !== '"') throw this.syntaxError();
        return true;
      case 'colon':
        return this.expect(character === ':', 'value');
      case 'value':
        if (this.member !== 'data') return true;
        if (character === '[') return this.expect(true, 'first record');
        throw new UnreadableJson(
          `has a "data" member that is ${this.kindOf(text.slice(at)) ?? 'no JSON'}, where an array of records is expected.`,
        );
      default:
        throw this.syntaxError();
    }
  }

  private expect(isFound: boolean, next: Place): false {
    if (!isFound) throw this.syntaxError();
    this.place = next;
    return false;
  }

  private endRecords(): false {
    this.place = this.inEnvelope ? 'after member' : 'end';
    return false;
  }

  private endEnvelope(): false {
    if (!this.members.has('data')) {
      throw new UnreadableJson('is an object without a "data" member, where a list of records is expected.');
    }
    this.place = 'end';
    return false;
  }

  private begin(start: string): void {
    if (!/^[[{]/.test(start)) {
      const kind = this.kindOf(start);
      throw new UnreadableJson(
        kind === null
          ? `is not JSON: it begins with ${JSON.stringify(start.slice(0, 20))}.`
          : `holds ${kind}, where a list of records is expected.`,
      );
    }
    this.inEnvelope = start.startsWith('{');
    this.place = this.inEnvelope ? 'first member' : 'first record';
  }

  private takeValue(records: SourceRecord[]): void {
    try {
      if (this.place === 'value') {
        this.keepMember(this.reader.read());
        this.place = 'after member';
      } else if (this.place === 'first member' || this.place === 'next member') {
        this.enterMember(String(this.reader.read().value));
        this.place = 'colon';
      } else {
        records.push(this.reader.record(this.position + 1));
        this.position++;
        this.place = 'after record';
      }
    } catch (error) {
      throw error instanceof SyntaxError ? this.syntaxError() : error;
    }
  }

  private enterMember(name: string): void {
    if (this.members.has(name)) {
      throw new UnreadableJson(`has two "${name}" members, of which only one can be meant.`);
    }
    if (name === 'data' || name === '_links' || name === '_meta') this.members.set(name, null);
    this.member = name;
  }

  private keepMember({ value, flaw }: ExactValue): void {
    if (!this.members.has(this.member)) return;
    if (flaw) {
      const path = quoted(`$.${this.member}${flaw.path.slice(1)}`);
      throw new UnreadableJson(`has a flaw in its envelope: ${path} ${flaw.reason}.`);
    }
    this.members.set(this.member, value);
  }

  /** Names the kind of the value that a text begins with; null if it begins with none. */
  private kindOf(text: string): string | null {
    if (text.startsWith('{')) return 'an object';
    if (text.startsWith('"')) return 'a string';
    if (/^[-\d]/.test(text)) return 'a number';
    return /^(true|false|null)/.exec(text)?.[0] ?? null;
  }

  private syntaxError(): UnreadableJson {
    return new UnreadableJson(`is not valid JSON after ${this.recordsSoFar()}.`);
  }

  private recordsSoFar(): string {
    return this.position === 0 ? 'its start' : `record ${this.position}`;
  }
}

/** One JSON value per line. */
class LinesParser implements RecordParser {
  readonly envelope: Envelope = { next: null, totalCount: undefined };
  private readonly reader: ValueReader;
  private parts: string[] = [];
  private line = 1;
  private position: number;

  constructor({ recordsBefore, maxDepth }: ParserOptions) {
    this.reader = new ValueReader(maxDepth);
    this.position = recordsBefore;
  }

  feed(text: string): SourceRecord[] {
    const records: SourceRecord[] = [];
    let from = 0;
    for (let end = text.indexOf('\n'); end !== -1; end = text.indexOf('\n', from)) {
      this.parts.push(text.slice(from, end + 1));
      this.endLine(records);
      from = end + 1;
    }
    if (from < text.length) this.parts.push(text.slice(from));
    return records;
  }

  end(): SourceRecord[] {
    const records = this.feed('\n');
    if (this.position === 0) throw new UnreadableJson('is empty, where a list of records is expected.');
    return records;
  }

  private endLine(records: SourceRecord[]): void {
    const line = this.parts.join('');
    this.parts = [];
    const start = afterWhiteSpace(line, 0);
    if (start < line.length) {
      const end = this.reader.scan(line, start);
      try {
        if (end === -1 || afterWhiteSpace(line, end) < line.length) throw new SyntaxError();
        records.push(this.reader.record(this.position + 1));
      } catch (error) {
        if (!(error instanceof SyntaxError)) throw error;
        throw new UnreadableJson(`is not JSON Lines: line ${this.line} is not one whole JSON value.`);
      }
      this.position++;
    }
    this.line++;
  }
}

/** Returns the index of the first character from an index on that is not white space. */
function afterWhiteSpace(text: string, from: number): number {
  let at = from;
  while (at < text.length && isWhiteSpace(text.charCodeAt(at))) at++;
  return at;
}

function nextHref(links: unknown): string | null {
  const next = member(asObject(links, '_links'), 'next');
  const href = member(asObject(next, '_links.next'), 'href') ?? '';
  if (typeof href !== 'string') throw new UnreadableJson('has a "_links.next.href" that is not a string.');
  return href === '' ? null : href;
}

/** Returns undefined for null and the empty array (which some servers write for an empty object): they hold no members. */
function asObject(value: unknown, name: string): unknown {
  if (value === undefined || value === null || (Array.isArray(value) && value.length === 0)) return undefined;
  if (typeof value === 'object' && !Array.isArray(value)) return value;
  throw new UnreadableJson(`has a "${name}" member that is not an object.`);
}

function member(value: unknown, name: string): unknown {
  if (typeof value !== 'object' || value === null || !Object.hasOwn(value, name)) return undefined;
  return (value as Record<string, unknown>)[name];
}
