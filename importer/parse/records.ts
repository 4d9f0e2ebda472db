// Finds the records in the text of one document: an array, an envelope with a `data` array, or JSON Lines.

import { quoted } from '../upstream/access.ts';
import { createTokenizer, type Flaw, type Token, ValueBuilder, writeTokens } from './values.ts';

/** One element of upstream's list, unchanged. */
export interface SourceRecord {
  /** Place in the list, from 1, counted over all pages. */
  readonly position: number;
  /** The parsed value, which need not be an object. A number that would be rounded is NaN. */
  readonly value: unknown;
  /** A reason to reject the record that only its JSON text shows; otherwise `null`. */
  readonly flaw: Flaw | null;
  /** Returns the record as JSON text, with its original numbers and repeated members. */
  raw(): string;
}

/** The envelope of a document; members are `undefined` if absent. */
export interface Envelope {
  /** `_links.next.href`; `null` without a next page. */
  readonly next: string | null;
  /** `_meta.totalCount`, of any type. */
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
  /** Whether the document is JSON Lines. Its text does not show that reliably. */
  readonly lines: boolean;
  /** How many records the previous pages had. */
  readonly recordsBefore: number;
  /** How many levels a record may be nested. */
  readonly maxDepth: number;
}

/** The document is not a list of records. The message continues a sentence that starts with the document's name. */
export class UnreadableJson extends Error {}

/** Makes the parser of one document. */
export function createRecordParser(options: ParserOptions): RecordParser {
  return options.lines ? new LinesParser(options) : new DocumentParser(options);
}

class ParsedRecord implements SourceRecord {
  readonly position: number;
  readonly value: unknown;
  readonly flaw: Flaw | null;
  /** `null` if JSON.stringify of the value returns this text; that saves memory. */
  private readonly text: string | null;

  constructor(position: number, builder: ValueBuilder, tokens: readonly Token[], from: number, to: number) {
    this.position = position;
    this.value = builder.value;
    this.flaw = builder.flaw;
    this.text = builder.isPlain ? null : writeTokens(builder.earlierTexts, tokens, from, to).join('');
  }

  raw(): string {
    return this.text ?? JSON.stringify(this.value);
  }
}

/** An array of records, or an envelope with such an array as its `data`. */
class DocumentParser implements RecordParser {
  private readonly tokenize = createTokenizer();
  private readonly builder: ValueBuilder;
  private place: 'start' | 'envelope' | 'data' | 'member' | 'records' | 'end' = 'start';
  private isEmpty = true;
  private inEnvelope = false;
  private member = '';
  private readonly members = new Map<string, unknown>();
  private position: number;

  constructor({ recordsBefore, maxDepth }: ParserOptions) {
    this.builder = new ValueBuilder(maxDepth);
    this.position = recordsBefore;
  }

  feed(text: string): SourceRecord[] {
    if (this.isEmpty) this.checkFirstCharacter(text);
    try {
      return this.recordsOf(this.tokenize(text));
    } catch (error) {
      throw error instanceof UnreadableJson ? error : this.syntaxError(error);
    }
  }

  end(): SourceRecord[] {
    if (this.isEmpty) throw new UnreadableJson('is empty; expected a list of records.');
    let records: SourceRecord[] = [];
    try {
      records = this.recordsOf(this.tokenize('\n'));
    } catch (error) {
      // Text that stops inside a number or word is reported as truncated, below.
      if (error instanceof UnreadableJson) throw error;
    }
    if (this.place !== 'end') {
      throw new UnreadableJson(`is truncated: its JSON ends early, after ${this.recordsSoFar()}.`);
    }
    return records;
  }

  get envelope(): Envelope {
    return {
      next: nextHref(this.members.get('_links')),
      totalCount: member(this.members.get('_meta'), 'totalCount'),
    };
  }

  private recordsOf(tokens: readonly Token[]): SourceRecord[] {
    const records: SourceRecord[] = [];
    for (let index = 0; index < tokens.length; ) {
      if (this.place === 'records' && (this.builder.isOpen || tokens[index]?.name !== 'endArray')) {
        const from = index;
        index = this.builder.read(tokens, from);
        if (!this.builder.isOpen) {
          records.push(new ParsedRecord(++this.position, this.builder, tokens, from, index));
        }
      } else if (this.place === 'member') {
        index = this.builder.read(tokens, index);
        if (!this.builder.isOpen) this.keepMember();
      } else {
        this.step(tokens[index] as Token);
        index++;
      }
    }
    return records;
  }

  /** Reads a token outside of records and member values. */
  private step(token: Token): void {
    switch (this.place) {
      case 'start':
        this.begin(token);
        break;
      case 'envelope':
        if (token.name === 'keyValue') this.enterMember(token.value);
        else this.leaveEnvelope();
        break;
      case 'data':
        if (token.name !== 'startArray') {
          throw new UnreadableJson(
            `has a "data" member that is ${kindOf(token)}; expected an array of records.`,
          );
        }
        this.place = 'records';
        break;
      case 'records':
        this.place = this.inEnvelope ? 'envelope' : 'end';
        break;
    }
  }

  private begin(token: Token): void {
    if (token.name === 'startArray') {
      this.place = 'records';
    } else if (token.name === 'startObject') {
      this.inEnvelope = true;
      this.place = 'envelope';
    } else {
      throw new UnreadableJson(`holds ${kindOf(token)}; expected a list of records.`);
    }
  }

  private enterMember(name: string): void {
    if (this.members.has(name)) throw new UnreadableJson(`has two "${name}" members; only one is allowed.`);
    if (name === 'data' || name === '_links' || name === '_meta') this.members.set(name, null);
    this.member = name;
    this.place = name === 'data' ? 'data' : 'member';
  }

  private keepMember(): void {
    const { value, flaw } = this.builder;
    if (this.members.has(this.member)) {
      if (flaw)
        throw new UnreadableJson(
          `has a flaw in its envelope: ${quoted(`$.${this.member}${flaw.path.slice(1)}`)} ${flaw.reason}.`,
        );
      this.members.set(this.member, value);
    }
    this.place = 'envelope';
  }

  private leaveEnvelope(): void {
    if (!this.members.has('data')) {
      throw new UnreadableJson('is an object without a "data" member; expected a list of records.');
    }
    this.place = 'end';
  }

  private checkFirstCharacter(text: string): void {
    const start = text.trimStart();
    if (start === '') return;
    this.isEmpty = false;
    if (!/^[[{"\-\dtfn]/.test(start)) {
      const isHtml = /^\s*<(?:!doctype|html)/i.test(start);
      const hint = isHtml
        ? ' This is an HTML page, such as a login or an error: check the URL, or ask upstream.'
        : '';
      throw new UnreadableJson(`is not JSON: it begins with ${JSON.stringify(start.slice(0, 20))}.${hint}`);
    }
  }

  private syntaxError(error: unknown): UnreadableJson {
    // The tokenizer returns no tokens of a piece with an error, so the exact record is not known.
    return new UnreadableJson(
      `is not valid JSON, soon after ${this.recordsSoFar()}: ${syntaxDetail(error)}.`,
    );
  }

  private recordsSoFar(): string {
    return this.position === 0 ? 'its start' : `record ${this.position}`;
  }
}

/** One JSON value per line. */
class LinesParser implements RecordParser {
  readonly envelope: Envelope = { next: null, totalCount: undefined };
  private readonly builder: ValueBuilder;
  private tokenize = createTokenizer();
  private line = 1;
  private isBlank = true;
  private isComplete = false;
  private position: number;

  constructor({ recordsBefore, maxDepth }: ParserOptions) {
    this.builder = new ValueBuilder(maxDepth);
    this.position = recordsBefore;
  }

  feed(text: string): SourceRecord[] {
    const records: SourceRecord[] = [];
    let from = 0;
    for (let end = text.indexOf('\n'); end !== -1; end = text.indexOf('\n', from)) {
      this.readPart(text.slice(from, end + 1), records);
      this.endLine();
      from = end + 1;
    }
    if (from < text.length) this.readPart(text.slice(from), records);
    return records;
  }

  end(): SourceRecord[] {
    const records: SourceRecord[] = [];
    if (!this.isBlank) {
      this.readPart('\n', records);
      this.endLine();
    }
    if (this.position === 0) throw new UnreadableJson('is empty; expected a list of records.');
    return records;
  }

  private readPart(text: string, records: SourceRecord[]): void {
    this.isBlank &&= !/[^ \t\r\n]/.test(text);
    const tokens = this.tokensOf(text);
    if (tokens.length === 0) return;
    const to = this.builder.read(tokens, 0);
    if (this.builder.isOpen) return;
    this.isComplete = true;
    records.push(new ParsedRecord(++this.position, this.builder, tokens, 0, to));
  }

  private tokensOf(text: string): readonly Token[] {
    try {
      return this.tokenize(text);
    } catch {
      throw this.lineError();
    }
  }

  private endLine(): void {
    if (!this.isBlank) {
      if (!this.isComplete) throw this.lineError();
      // A tokenizer reads one document: a new one for each line refuses a second value on the line.
      this.tokenize = createTokenizer();
    }
    this.line++;
    this.isBlank = true;
    this.isComplete = false;
  }

  private lineError(): UnreadableJson {
    return new UnreadableJson(`is not JSON Lines: line ${this.line} is not one complete JSON value.`);
  }
}

function syntaxDetail(error: unknown): string {
  return quoted((error as Error).message.replace(/^Parser (cannot parse input: |has )/, ''));
}

function kindOf(token: Token): string {
  switch (token.name) {
    case 'startObject':
      return 'an object';
    case 'startArray':
      return 'an array';
    case 'stringValue':
      return 'a string';
    case 'numberValue':
      return 'a number';
    default:
      return 'value' in token ? String(token.value) : token.name;
  }
}

function nextHref(links: unknown): string | null {
  const next = member(asObject(links, '_links'), 'next');
  const href = member(asObject(next, '_links.next'), 'href') ?? '';
  if (typeof href !== 'string') throw new UnreadableJson('has a "_links.next.href" that is not a string.');
  return href === '' ? null : href;
}

/** Returns `undefined` for null, and for the empty array that some servers write for an empty object. */
function asObject(value: unknown, name: string): unknown {
  if (value === undefined || value === null || (Array.isArray(value) && value.length === 0)) return undefined;
  if (typeof value === 'object' && !Array.isArray(value)) return value;
  throw new UnreadableJson(`has a "${name}" member that is not an object.`);
}

function member(value: unknown, name: string): unknown {
  if (typeof value !== 'object' || value === null || !Object.hasOwn(value, name)) return undefined;
  return (value as Record<string, unknown>)[name];
}
