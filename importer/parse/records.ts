// Finds the records in the text of one document: an array, an envelope with a `data` array, or JSON Lines.

import { quoted } from '../upstream/access.ts';
import { createTokenizer, type Flaw, type Token, ValueBuilder, writeTokens } from './values.ts';

/** One element of the upstream's list, as it came. */
export interface SourceRecord {
  /** Place in the list, from 1, counted over all pages. */
  readonly position: number;
  /** The parsed value, which need not be an object. A number that could only be kept rounded is NaN. */
  readonly value: unknown;
  /** A reason to reject the record that its JSON text shows and its value does not, or null. */
  readonly flaw: Flaw | null;
  /** Returns the record as JSON text, with numbers and repeated members as they came. */
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

class ParsedRecord implements SourceRecord {
  readonly position: number;
  readonly value: unknown;
  readonly flaw: Flaw | null;
  /** Null if JSON.stringify of the value gives it, which saves the memory of the text. */
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
    if (this.isEmpty) throw new UnreadableJson('is empty, where a list of records is expected.');
    let records: SourceRecord[] = [];
    try {
      records = this.recordsOf(this.tokenize('\n'));
    } catch (error) {
      // Text that stops in the middle of a number or word is reported as cut off, below.
      if (error instanceof UnreadableJson) throw error;
    }
    if (this.place !== 'end') {
      throw new UnreadableJson(`is cut off: its JSON ends too early, after ${this.recordsSoFar()}.`);
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

  /** Reads a token outside of records and of members' values. */
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
            `has a "data" member that is ${kindOf(token)}, where an array of records is expected.`,
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
      throw new UnreadableJson(`holds ${kindOf(token)}, where a list of records is expected.`);
    }
  }

  private enterMember(name: string): void {
    if (this.members.has(name))
      throw new UnreadableJson(`has two "${name}" members, of which only one can be meant.`);
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
      throw new UnreadableJson('is an object without a "data" member, where a list of records is expected.');
    }
    this.place = 'end';
  }

  private checkFirstCharacter(text: string): void {
    const start = text.trimStart();
    if (start === '') return;
    this.isEmpty = false;
    if (!/^[[{"\-\dtfn]/.test(start)) {
      throw new UnreadableJson(`is not JSON: it begins with ${JSON.stringify(start.slice(0, 20))}.`);
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
    if (this.position === 0) throw new UnreadableJson('is empty, where a list of records is expected.');
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
    return new UnreadableJson(`is not JSON Lines: line ${this.line} is not one whole JSON value.`);
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
